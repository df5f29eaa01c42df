select
    tailnum as tail_number,
    cast(nullif(year, 'NA') as integer) as built,
    type as aircraft_type,
    manufacturer,
    nullif(model, 'NA') as model,
    cast(nullif(engines, 'NA') as integer) as engines,
    cast(nullif(seats, 'NA') as integer) as seats,
    engine
from {source}
