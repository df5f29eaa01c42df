select
    try_cast(year || '-' || month || '-' || day as date) as flight_date,
    carrier,
    flight_number,
    tail_number,
    origin,
    destination,
    distance_miles,
    -- UTC, from the source's own UTC hour: local clock times would be wrong twice a year
    scheduled_hour,
    scheduled_hour + to_minutes(minute) as scheduled_at,
    departure_delay_minutes,
    arrival_delay_minutes,
    air_time_minutes,
    case
        when dep_time is null then 'cancelled'
        when arr_time is null then 'no arrival'
        when arrival_delay_minutes is null then 'diverted'
        else 'arrived'
    end as status
from {source}
