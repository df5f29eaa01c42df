select
    airport,
    hour_at,
    temperature_f,
    wind_mph,
    visibility_miles,
    precipitation_inches,
    pressure_millibars,
    -- Beaufort 0-1, 2-3, 4-5, 6 and more, in miles an hour; 253 mph is the strongest gust on record
    case
        when wind_mph < 4 then 'calm'
        when wind_mph < 13 then 'light'
        when wind_mph < 25 then 'fresh'
        when wind_mph <= 253 then 'strong'
        when wind_mph is not null then 'impossible'
    end as wind
from {source}
