select
    make_date(cast(year as integer), cast(month as integer), cast(day as integer)) as flight_date,
    carrier,
    cast(flight as integer) as flight_number,
    nullif(tailnum, 'NA') as tail_number,
    origin,
    dest as destination,
    cast(distance as integer) as distance_miles,
    -- UTC, from the source's own UTC hour: local clock times would be wrong twice a year
    cast(time_hour as timestamptz) as scheduled_hour,
    cast(time_hour as timestamptz) + to_minutes(cast(minute as integer)) as scheduled_at,
    cast(nullif(dep_delay, 'NA') as integer) as departure_delay_minutes,
    cast(nullif(arr_delay, 'NA') as integer) as arrival_delay_minutes,
    cast(nullif(air_time, 'NA') as integer) as air_time_minutes,
    case
        when dep_time = 'NA' then 'cancelled'
        when arr_time = 'NA' then 'no arrival'
        when arr_delay = 'NA' then 'diverted'
        else 'arrived'
    end as status
from {source}
