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
        ORDER BY CAST((
          (
            (
              number % 2147483647 + 2147483647
            ) * 314159265 % 2147483629
          ) * 358979323 % 2147483587
        ) * 846264338 % 2147483647 AS INT), number, row_key
      ) AS place
    FROM (
      SELECT
        held."readmitted" AS label,
        held."risk" AS score,
        CAST(held."patient" AS TEXT) AS unit_key,
        held."visit" AS row_key,
        CAST(held."visit" AS BIGINT) AS number
      FROM heldout_rows AS held
    ) AS named
  ) AS placed
  WHERE
    place <= 2
)
SELECT
  label,
  CAST(score >= CAST('0.25' AS DOUBLE) AS INT) + CAST(score >= CAST('0.5' AS DOUBLE) AS INT) AS interval_number,
  COUNT(*) AS n
FROM evaluated
GROUP BY
  1,
  2
