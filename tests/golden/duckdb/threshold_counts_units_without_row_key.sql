WITH evaluated AS (
  SELECT
    label,
    score
  FROM (
    SELECT
      label,
      score,
      ROW_NUMBER() OVER (
        PARTITION BY unit_key
        ORDER BY CAST('0x' || SUBSTRING(MD5(CAST(owner AS TEXT) || '/' || CAST(number AS TEXT)), 1, 15) AS BIGINT), number
      ) AS place
    FROM (
      SELECT
        label,
        score,
        unit_key,
        owner,
        ROW_NUMBER() OVER (PARTITION BY unit_key ORDER BY nth) AS number
      FROM (
        SELECT
          held."readmitted" AS label,
          held."risk" AS score,
          CAST(held."patient" AS TEXT) AS unit_key,
          COALESCE(
            CASE
              WHEN REGEXP_MATCHES(
                CASE
                  WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                  THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                  ELSE CAST(held."patient" AS TEXT)
                END,
                '^-?[0-9]{1,19}$'
              )
              THEN TRY_CAST(CASE
                WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                ELSE CAST(held."patient" AS TEXT)
              END AS BIGINT)
            END,
            CAST('0x' || SUBSTRING(
              MD5(
                CASE
                  WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                  THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                  ELSE CAST(held."patient" AS TEXT)
                END
              ),
              1,
              15
            ) AS BIGINT)
          ) AS owner,
          ROW_NUMBER() OVER () AS nth
        FROM heldout_rows AS held
      ) AS named
    ) AS keyed
  ) AS placed
  WHERE
    place <= 2
)
SELECT
  label,
  (
    CAST(score >= CAST('0.25' AS DOUBLE) AS INT) + CAST(score >= CAST('0.5' AS DOUBLE) AS INT)
  ) AS interval_number,
  COUNT(*) AS n
FROM evaluated
GROUP BY
  1,
  2
