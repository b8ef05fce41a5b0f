SELECT
  COUNT(*) AS n,
  (
    CAST(SUM(
      (
        (
          (
            (
              CAST(held."visit" AS BIGINT)
            ) % 2147483647 + 2147483647
          ) * 314159265 % 2147483629
        ) * 358979323 % 2147483587
      ) * 846264338 % 2147483647
    ) AS TEXT) COLLATE "C"
  ) || CAST('/' AS TEXT) || (
    CAST(SUM(
      (
        (
          (
            (
              CAST(held."visit" AS BIGINT)
            ) % 2147483579 + 2147483579
          ) * 271828182 % 2147483563
        ) * 845904523 % 2147483549
      ) * 536028747 % 2147483579
    ) AS TEXT) COLLATE "C"
  ) AS fingerprint_row_key,
  (
    CAST(SUM(
      (
        (
          (
            (
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
              )
            ) % 2147483647 + 2147483647
          ) * 314159265 % 2147483629
        ) * 358979323 % 2147483587
      ) * 846264338 % 2147483647
    ) AS TEXT) COLLATE "C"
  ) || CAST('/' AS TEXT) || (
    CAST(SUM(
      (
        (
          (
            (
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
              )
            ) % 2147483579 + 2147483579
          ) * 271828182 % 2147483563
        ) * 845904523 % 2147483549
      ) * 536028747 % 2147483579
    ) AS TEXT) COLLATE "C"
  ) AS fingerprint_unit,
  (
    CAST(SUM(
      (
        (
          (
            (
              COALESCE(
                CASE
                  WHEN (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  ) ~ CAST('^-?[0-9]{1,19}([.]0+)?$' AS TEXT)
                  THEN CASE
                    WHEN SPLIT_PART((
                      CAST(held."patient" AS TEXT) COLLATE "C"
                    ), CAST('.' AS TEXT), 1) ~ CAST('^-?[0-9]{1,19}$' AS TEXT)
                    THEN CASE
                      WHEN CAST(SPLIT_PART((
                        CAST(held."patient" AS TEXT) COLLATE "C"
                      ), CAST('.' AS TEXT), 1) AS DECIMAL) BETWEEN -9223372036854775808 AND 9223372036854775807
                      THEN CAST(SPLIT_PART((
                        CAST(held."patient" AS TEXT) COLLATE "C"
                      ), CAST('.' AS TEXT), 1) AS BIGINT)
                    END
                  END
                END,
                CAST(CAST(CAST('x' AS TEXT) || SUBSTRING(MD5((
                  CAST(held."patient" AS TEXT) COLLATE "C"
                )) FROM 1 FOR 15) AS BIT(60)) AS BIGINT)
              )
            ) % 2147483647 + 2147483647
          ) * 314159265 % 2147483629
        ) * 358979323 % 2147483587
      ) * 846264338 % 2147483647
    ) AS TEXT) COLLATE "C"
  ) || CAST('/' AS TEXT) || (
    CAST(SUM(
      (
        (
          (
            (
              COALESCE(
                CASE
                  WHEN (
                    CAST(held."patient" AS TEXT) COLLATE "C"
                  ) ~ CAST('^-?[0-9]{1,19}([.]0+)?$' AS TEXT)
                  THEN CASE
                    WHEN SPLIT_PART((
                      CAST(held."patient" AS TEXT) COLLATE "C"
                    ), CAST('.' AS TEXT), 1) ~ CAST('^-?[0-9]{1,19}$' AS TEXT)
                    THEN CASE
                      WHEN CAST(SPLIT_PART((
                        CAST(held."patient" AS TEXT) COLLATE "C"
                      ), CAST('.' AS TEXT), 1) AS DECIMAL) BETWEEN -9223372036854775808 AND 9223372036854775807
                      THEN CAST(SPLIT_PART((
                        CAST(held."patient" AS TEXT) COLLATE "C"
                      ), CAST('.' AS TEXT), 1) AS BIGINT)
                    END
                  END
                END,
                CAST(CAST(CAST('x' AS TEXT) || SUBSTRING(MD5((
                  CAST(held."patient" AS TEXT) COLLATE "C"
                )) FROM 1 FOR 15) AS BIT(60)) AS BIGINT)
              )
            ) % 2147483579 + 2147483579
          ) * 271828182 % 2147483563
        ) * 845904523 % 2147483549
      ) * 536028747 % 2147483579
    ) AS TEXT) COLLATE "C"
  ) AS fingerprint_unit_before
FROM heldout_rows AS held
