SELECT
  COUNT(*) AS n,
  COUNT(*) - COUNT(held."readmitted") AS missing_label,
  COUNT(*) FILTER(WHERE
    NOT held."readmitted" IS NULL
    AND NOT COALESCE(held."readmitted" = 1 OR held."readmitted" = 0, FALSE)) AS unknown_label,
  COUNT(*) FILTER(WHERE
    held."risk" IS NULL OR IS_NAN(held."risk")) AS missing_score,
  COUNT(*) FILTER(WHERE
    NOT (
      held."risk" >= CAST('-1.7976931348623157e+308' AS DOUBLE PRECISION)
      AND held."risk" <= CAST('1.7976931348623157e+308' AS DOUBLE PRECISION)
    )
    AND NOT IS_NAN(held."risk")) AS infinite_score,
  COUNT(*) FILTER(WHERE
    (
      held."risk" >= CAST('-1.7976931348623157e+308' AS DOUBLE PRECISION)
      AND held."risk" <= CAST('1.7976931348623157e+308' AS DOUBLE PRECISION)
    )
    AND NOT (
      held."risk" >= CAST('0.0' AS DOUBLE PRECISION)
      AND held."risk" <= CAST('1.0' AS DOUBLE PRECISION)
    )) AS outside,
  COUNT(*) - COUNT(held."patient") AS missing_unit,
  COUNT(*) - COUNT(held."visit") AS missing_key,
  COUNT(*) - COUNT(DISTINCT held."visit") AS duplicate,
  CAST(BIT_XOR(
    HASH(
      (
        HASH(CAST(held."visit" AS DOUBLE PRECISION)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            ) IS NULL
            THEN HASH(CAST(held."patient" AS TEXT))
            ELSE HASH(
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."readmitted" AS DOUBLE PRECISION)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."outcome" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."outcome" AS TEXT) AS DOUBLE PRECISION)
              END
            ) IS NULL
            THEN HASH(CAST(held."outcome" AS TEXT))
            ELSE HASH(
              CASE LOWER(CAST(held."outcome" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."outcome" AS TEXT) AS DOUBLE PRECISION)
              END
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."risk" AS DOUBLE PRECISION)) >> 16
      )
    )
  ) AS TEXT) || '/' || CAST(SUM(
    HASH(
      (
        HASH(CAST(held."visit" AS DOUBLE PRECISION)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            ) IS NULL
            THEN HASH(CAST(held."patient" AS TEXT))
            ELSE HASH(
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."readmitted" AS DOUBLE PRECISION)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."outcome" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."outcome" AS TEXT) AS DOUBLE PRECISION)
              END
            ) IS NULL
            THEN HASH(CAST(held."outcome" AS TEXT))
            ELSE HASH(
              CASE LOWER(CAST(held."outcome" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."outcome" AS TEXT) AS DOUBLE PRECISION)
              END
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."risk" AS DOUBLE PRECISION)) >> 16
      )
    ) >> 24
  ) AS TEXT) AS fingerprint_all,
  CAST(BIT_XOR(
    HASH(
      (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            ) IS NULL
            THEN HASH(CAST(held."patient" AS TEXT))
            ELSE HASH(
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."visit" AS DOUBLE PRECISION)) >> 16
      )
    )
  ) AS TEXT) || '/' || CAST(SUM(
    HASH(
      (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            ) IS NULL
            THEN HASH(CAST(held."patient" AS TEXT))
            ELSE HASH(
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE CAST(CAST(held."patient" AS TEXT) AS DOUBLE PRECISION)
              END
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."visit" AS DOUBLE PRECISION)) >> 16
      )
    ) >> 24
  ) AS TEXT) AS fingerprint_keys
FROM heldout_rows AS held
