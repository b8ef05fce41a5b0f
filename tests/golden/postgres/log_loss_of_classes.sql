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
  CAST(SUM(most) AS BIGINT) AS most,
  CAST(SUM(
    CAST(FLOOR(
      (
        CASE
          WHEN ABS((
            error
          ) * (
            (
              1048576 - most
            )
          )) < CAST('1.048576e-294' AS DOUBLE PRECISION)
          THEN CAST('0' AS DOUBLE PRECISION)
          ELSE (
            error
          ) * (
            (
              1048576 - most
            )
          ) / CAST('1048576.0' AS DOUBLE PRECISION)
        END
      )
    ) AS BIGINT)
  ) AS BIGINT) AS lacking,
  CAST(SUM(
    CAST(FLOOR(
      (
        CASE
          WHEN ABS((
            (
              most - error
            )
          ) * (
            (
              1048576 - most
            )
          )) < CAST('1.048576e-294' AS DOUBLE PRECISION)
          THEN CAST('0' AS DOUBLE PRECISION)
          ELSE (
            (
              most - error
            )
          ) * (
            (
              1048576 - most
            )
          ) / CAST('1048576.0' AS DOUBLE PRECISION)
        END
      )
    ) AS BIGINT)
  ) AS BIGINT) AS spare
FROM (
  SELECT
    GREATEST(
      0,
      LEAST(
        CAST(FLOOR(
          GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
        ) AS BIGINT),
        CAST(FLOOR(
          (
            (
              CASE
                WHEN ABS(-LN(GREATEST(own, CAST('0.01' AS DOUBLE PRECISION)))) < CAST('4.605170185988091e-300' AS DOUBLE PRECISION)
                THEN CAST('0' AS DOUBLE PRECISION)
                ELSE -LN(GREATEST(own, CAST('0.01' AS DOUBLE PRECISION))) / CAST('4.605170185988091' AS DOUBLE PRECISION)
              END
            )
          ) * CAST(FLOOR(
            GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
          ) AS BIGINT) + 0.5
        ) AS BIGINT)
      )
    ) AS error,
    CAST(FLOOR(
      GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
    ) AS BIGINT) AS most
  FROM evaluated
) AS errors
