with typed as (
    select
        origin as airport,
        cast(time_hour as timestamptz) as hour_at,
        cast(nullif(temp, 'NA') as double) as temperature_f,
        cast(nullif(wind_speed, 'NA') as double) as wind_mph,
        cast(nullif(visib, 'NA') as double) as visibility_miles,
        cast(nullif(precip, 'NA') as double) as precipitation_inches,
        cast(nullif(pressure, 'NA') as double) as pressure_millibars
    from {source}
)
select
    *,
    -- Beaufort 0-1, 2-3, 4-5, 6 and more, in miles an hour; 253 mph is the strongest gust on record
    case
        when wind_mph < 4 then 'calm'
        when wind_mph < 13 then 'light'
        when wind_mph < 25 then 'fresh'
        when wind_mph <= 253 then 'strong'
        when wind_mph is not null then 'impossible'
    end as wind
from typed
