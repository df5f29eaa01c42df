select
    f.carrier,
    count(*) as departed,
    count(distinct f.tail_number) as aircraft,
    count(*) filter (p.tail_number is null) as departed_with_unknown_aircraft,
    -- of known aircraft only
    sum(p.seats) as seats_flown,
    avg(year(f.flight_date) - p.built) as mean_age_years
from {flights} as f
-- American and Envoy deliver their own fleet numbers as tail numbers. Some happen to be another aircraft's tail number
-- (two-seaters among them), so none of theirs is looked up.
left join {planes} as p on p.tail_number = f.tail_number and f.carrier not in ('AA', 'MQ')
where f.status <> 'cancelled'
group by f.carrier
