select
    f.origin as airport,
    case
        when w.airport is null then 'not reported'
        when w.visibility_miles < 1 then 'fog'
        when w.precipitation_inches > 0 then 'rain or snow'
        when w.wind in ('fresh', 'strong') then 'windy'
        else 'fair'
    end as weather,
    count(*) as flights,
    count(*) filter (f.status = 'cancelled') as cancelled,
    sum(f.departure_delay_minutes) as departure_delay_minutes,
    avg(f.departure_delay_minutes) as mean_departure_delay_minutes
from {flights} as f
left join {weather} as w on w.airport = f.origin and w.hour_at = f.scheduled_hour
group by all
