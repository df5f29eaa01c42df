select
    f.destination,
    a.airport_name,
    count(*) as flights,
    count(*) filter (f.status = 'arrived') as arrived,
    count(*) filter (f.arrival_delay_minutes < 15) as on_time,
    sum(f.arrival_delay_minutes) as arrival_delay_minutes,
    avg(f.arrival_delay_minutes) as mean_arrival_delay_minutes
from {flights} as f
left join {airports} as a on a.airport = f.destination
group by f.destination, a.airport_name
