SELECT
  COUNT(*) AS n,
  CAST(SUM(
    (
      (
        (
          (
            CAST(held.`visit` AS BIGINT)
          ) % 2147483647 + 2147483647
        ) * 314159265 % 2147483629
      ) * 358979323 % 2147483587
    ) * 846264338 % 2147483647
  ) AS STRING) || '/' || CAST(SUM(
    (
      (
        (
          (
            CAST(held.`visit` AS BIGINT)
          ) % 2147483579 + 2147483579
        ) * 271828182 % 2147483563
      ) * 845904523 % 2147483549
    ) * 536028747 % 2147483579
  ) AS STRING) AS fingerprint_row_key,
  CAST(SUM(
    (
      (
        (
          (
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
            )
          ) % 2147483647 + 2147483647
        ) * 314159265 % 2147483629
      ) * 358979323 % 2147483587
    ) * 846264338 % 2147483647
  ) AS STRING) || '/' || CAST(SUM(
    (
      (
        (
          (
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
            )
          ) % 2147483579 + 2147483579
        ) * 271828182 % 2147483563
      ) * 845904523 % 2147483549
    ) * 536028747 % 2147483579
  ) AS STRING) AS fingerprint_unit,
  CAST(SUM(
    (
      (
        (
          (
            COALESCE(
              CASE
                WHEN CAST(held.`patient` AS STRING) RLIKE '^-?[0-9]{1,19}([.]0+)?\\z'
                THEN TRY_CAST(SPLIT_PART(CAST(held.`patient` AS STRING), '.', 1) AS BIGINT)
              END,
              CAST(CONV(SUBSTRING(MD5(CAST(held.`patient` AS STRING)), 1, 15), 16, 10) AS BIGINT)
            )
          ) % 2147483647 + 2147483647
        ) * 314159265 % 2147483629
      ) * 358979323 % 2147483587
    ) * 846264338 % 2147483647
  ) AS STRING) || '/' || CAST(SUM(
    (
      (
        (
          (
            COALESCE(
              CASE
                WHEN CAST(held.`patient` AS STRING) RLIKE '^-?[0-9]{1,19}([.]0+)?\\z'
                THEN TRY_CAST(SPLIT_PART(CAST(held.`patient` AS STRING), '.', 1) AS BIGINT)
              END,
              CAST(CONV(SUBSTRING(MD5(CAST(held.`patient` AS STRING)), 1, 15), 16, 10) AS BIGINT)
            )
          ) % 2147483579 + 2147483579
        ) * 271828182 % 2147483563
      ) * 845904523 % 2147483549
    ) * 536028747 % 2147483579
  ) AS STRING) AS fingerprint_unit_before
FROM heldout_rows AS held
