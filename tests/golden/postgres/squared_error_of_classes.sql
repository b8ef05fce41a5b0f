WITH evaluated AS (
  SELECT
    CASE
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('no' AS TEXT)
      THEN 0
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('yes' AS TEXT)
      THEN 1
    END AS truth,
    held."calm" AS score_0,
    held."risk" AS score_1,
    GREATEST(held."calm", held."risk") AS top,
    CASE
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('no' AS TEXT)
      THEN held."calm"
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('yes' AS TEXT)
      THEN held."risk"
    END AS own,
    (
      held."risk"
    ) / CAST('1.0' AS DOUBLE PRECISION) AS weight
  FROM heldout_rows AS held
)
SELECT
  CAST(SUM(error) AS BIGINT) AS total,
  CAST(SUM(
    CAST(FLOOR(
      (
        CASE
          WHEN ABS((
            error
          ) * (
            (
              most - error
            )
          )) < CAST('1.048576e-294' AS DOUBLE PRECISION)
          THEN CAST('0' AS DOUBLE PRECISION)
          ELSE (
            error
          ) * (
            (
              most - error
            )
          ) / CAST('1048576.0' AS DOUBLE PRECISION)
        END
      )
    ) AS BIGINT)
  ) AS BIGINT) AS product,
  CAST(SUM(most) AS BIGINT) AS most
FROM (
  SELECT
    GREATEST(
      0,
      LEAST(
        1048576,
        CAST(FLOOR(
          (
            CAST((
              (
                CASE
                  WHEN ABS(score_0) < CAST('1e-150' AS DOUBLE PRECISION)
                  THEN CAST('0' AS DOUBLE PRECISION)
                  ELSE score_0 * score_0
                END
              ) + (
                CASE
                  WHEN ABS(score_1) < CAST('1e-150' AS DOUBLE PRECISION)
                  THEN CAST('0' AS DOUBLE PRECISION)
                  ELSE score_1 * score_1
                END
              ) - 2 * own + 1
            ) AS DOUBLE PRECISION) / 2
          ) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
        ) AS BIGINT)
      )
    ) AS error,
    1048576 AS most
  FROM evaluated
) AS errors
