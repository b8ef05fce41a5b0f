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
        ORDER BY CAST(CONV(
          SUBSTRING(MD5(CAST(owner AS STRING) || '/' || CAST(number AS STRING)), 1, 15),
          16,
          10
        ) AS BIGINT) NULLS LAST, number NULLS LAST, row_key NULLS LAST
      ) AS place
    FROM (
      SELECT
        held.`readmitted` AS label,
        held.`risk` AS score,
        CAST(held.`patient` AS STRING) AS unit_key,
        COALESCE(
          CASE
            WHEN CASE
              WHEN CAST(held.`patient` AS STRING) RLIKE '^-?[0-9]+[.][0-9]+\\z'
              THEN TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(held.`patient` AS STRING)))
              ELSE CAST(held.`patient` AS STRING)
            END RLIKE '^-?[0-9]{1,19}\\z'
            THEN TRY_CAST(CASE
              WHEN CAST(held.`patient` AS STRING) RLIKE '^-?[0-9]+[.][0-9]+\\z'
              THEN TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(held.`patient` AS STRING)))
              ELSE CAST(held.`patient` AS STRING)
            END AS BIGINT)
          END,
          CAST(CONV(
            SUBSTRING(
              MD5(
                CASE
                  WHEN CAST(held.`patient` AS STRING) RLIKE '^-?[0-9]+[.][0-9]+\\z'
                  THEN TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(held.`patient` AS STRING)))
                  ELSE CAST(held.`patient` AS STRING)
                END
              ),
              1,
              15
            ),
            16,
            10
          ) AS BIGINT)
        ) AS owner,
        held.`visit` AS row_key,
        CAST(held.`visit` AS BIGINT) AS number
      FROM heldout_rows AS held
    ) AS named
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
