select
    faa as airport,
    name as airport_name,
    cast(nullif(lat, 'NA') as double) as latitude,
    cast(nullif(lon, 'NA') as double) as longitude,
    cast(nullif(alt, 'NA') as integer) as altitude_feet,
    nullif(tzone, 'NA') as time_zone
from {source}
