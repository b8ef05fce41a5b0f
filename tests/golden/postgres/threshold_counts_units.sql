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
        ORDER BY CAST(CAST(CAST('x' AS TEXT) || SUBSTRING(MD5(
          (
            CAST(owner AS TEXT) COLLATE "C"
          ) || CAST('/' AS TEXT) || (
            CAST(number AS TEXT) COLLATE "C"
          )
        ) FROM 1 FOR 15) AS BIT(60)) AS BIGINT), number, row_key
      ) AS place
    FROM (
      SELECT
        held."readmitted" AS label,
        held."risk" AS score,
        (
          CAST(held."patient" AS TEXT) COLLATE "C"
        ) AS unit_key,
        COALESCE(
          CASE
            WHEN CASE
              WHEN (
                CAST(held."patient" AS TEXT) COLLATE "C"
              ) ~ CAST('^-?[0-9]+[.][0-9]+$' AS TEXT)
              THEN TRIM(TRAILING CAST('.' AS TEXT) FROM TRIM(TRAILING CAST('0' AS TEXT) FROM (
                CAST(held."patient" AS TEXT) COLLATE "C"
              )))
              ELSE (
                CAST(held."patient" AS TEXT) COLLATE "C"
              )
            END ~ CAST('^-?[0-9]{1,19}$' AS TEXT)
            THEN CASE
              WHEN CASE
                WHEN (
                  CAST(held."patient" AS TEXT) COLLATE "C"
                ) ~ CAST('^-?[0-9]+[.][0-9]+$' AS TEXT)
                THEN TRIM(TRAILING CAST('.' AS TEXT) FROM TRIM(TRAILING CAST('0' AS TEXT) FROM (
                  CAST(held."patient" AS TEXT) COLLATE "C"
                )))
                ELSE (
                  CAST(held."patient" AS TEXT) COLLATE "C"
                )
              END ~ CAST('^-?[0-9]{1,19}$' AS TEXT)
              THEN CASE
                WHEN CAST(CASE
                  WHEN (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  ) ~ CAST('^-?[0-9]+[.][0-9]+$' AS TEXT)
                  THEN TRIM(TRAILING CAST('.' AS TEXT) FROM TRIM(TRAILING CAST('0' AS TEXT) FROM (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  )))
                  ELSE (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  )
                END AS DECIMAL) BETWEEN -9223372036854775808 AND 9223372036854775807
                THEN CAST(CASE
                  WHEN (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  ) ~ CAST('^-?[0-9]+[.][0-9]+$' AS TEXT)
                  THEN TRIM(TRAILING CAST('.' AS TEXT) FROM TRIM(TRAILING CAST('0' AS TEXT) FROM (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  )))
                  ELSE (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  )
                END AS BIGINT)
              END
            END
          END,
          CAST(CAST(CAST('x' AS TEXT) || SUBSTRING(MD5(
            CASE
              WHEN (
                CAST(held."patient" AS TEXT) COLLATE "C"
              ) ~ CAST('^-?[0-9]+[.][0-9]+$' AS TEXT)
              THEN TRIM(TRAILING CAST('.' AS TEXT) FROM TRIM(TRAILING CAST('0' AS TEXT) FROM (
                CAST(held."patient" AS TEXT) COLLATE "C"
              )))
              ELSE (
                CAST(held."patient" AS TEXT) COLLATE "C"
              )
            END
          ) FROM 1 FOR 15) AS BIT(60)) AS BIGINT)
        ) AS owner,
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
  (
    CAST(score >= CAST('0.25' AS DOUBLE PRECISION) AS INT) + CAST(score >= CAST('0.5' AS DOUBLE PRECISION) AS INT)
  ) AS interval_number,
  COUNT(*) AS n
FROM evaluated
GROUP BY
  1,
  2
