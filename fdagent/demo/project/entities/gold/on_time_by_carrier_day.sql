-- On time as the US Department of Transportation counts it: arrived less than 15 minutes late. The share is of all
-- scheduled flights, so a cancelled or a diverted flight is a flight that was not on time.
select
    f.flight_date,
    f.carrier,
    a.carrier_name,
    count(*) as flights,
    count(*) filter (f.status <> 'cancelled') as departed,
    count(*) filter (f.status = 'cancelled') as cancelled,
    count(*) filter (f.status = 'diverted') as diverted,
    count(*) filter (f.arrival_delay_minutes < 15) as on_time,
    count(*) filter (f.arrival_delay_minutes < 15) / count(*) as on_time_share,
    sum(f.arrival_delay_minutes) as arrival_delay_minutes,
    avg(f.arrival_delay_minutes) as mean_arrival_delay_minutes
from {flights} as f
left join {airlines} as a on a.carrier = f.carrier
group by f.flight_date, f.carrier, a.carrier_name
