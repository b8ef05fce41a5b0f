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
    ) / CAST('1.0' AS DOUBLE PRECISION) AS weight,
    CASE
      WHEN (
        CAST(held."patient" AS TEXT) COLLATE "C"
      ) = CAST('p1' AS TEXT)
      THEN 0
      ELSE 1
    END AS member
  FROM heldout_rows AS held
)
SELECT
  member,
  CAST(score_0 > own OR (
    score_0 >= own AND truth > 0
  ) AS INT) + CAST(score_1 > own OR (
    score_1 >= own AND truth > 1
  ) AS INT) AS rank,
  CAST(SUM(
    CAST(FLOOR(
      GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
    ) AS BIGINT)
  ) AS BIGINT) AS n,
  CAST(SUM(
    CAST(FLOOR(
      (
        CASE
          WHEN ABS(
            (
              CAST(FLOOR(
                GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
              ) AS BIGINT)
            ) * (
              1048576 - CAST(FLOOR(
                GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
              ) AS BIGINT)
            )
          ) < CAST('1.048576e-294' AS DOUBLE PRECISION)
          THEN CAST('0' AS DOUBLE PRECISION)
          ELSE (
            CAST(FLOOR(
              GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
            ) AS BIGINT)
          ) * (
            1048576 - CAST(FLOOR(
              GREATEST(CAST('0.0' AS DOUBLE PRECISION), LEAST(CAST('1.0' AS DOUBLE PRECISION), weight)) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
            ) AS BIGINT)
          ) / CAST('1048576.0' AS DOUBLE PRECISION)
        END
      )
    ) AS BIGINT)
  ) AS BIGINT) AS lacking
FROM evaluated
GROUP BY
  1,
  2
