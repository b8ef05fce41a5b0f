# The part that is written by hand: an address, a token, one request, and one evaluation.

#' A server, by its address and the text of a token
#' @export
ho_server <- function(address, token) {
  structure(list(address = sub("/+$", "", address), token = trimws(token)), class = "ho_server")
}

# A token must not be printed with the rest.
#' @export
print.ho_server <- function(x, ...) {
  cat("<heldout server ", x$address, ">\n", sep = "")
  invisible(x)
}

ho_path <- function(route, ...) {
  for (name in ...names()) {
    value <- utils::URLencode(as.character(list(...)[[name]]), reserved = TRUE)
    route <- sub(paste0("{", name, "}"), value, route, fixed = TRUE)
  }
  route
}

ho_call <- function(server, method, route, query = list(), headers = list(), body = NULL,
                    file = NULL, type = NULL) {
  request <- httr2::request(paste0(server$address, "/api/v1", route))
  request <- httr2::req_method(request, method)
  request <- httr2::req_auth_bearer_token(request, server$token)
  request <- do.call(httr2::req_url_query, c(list(request), query))
  request <- do.call(httr2::req_headers, c(list(request), headers))
  if (!is.null(body)) request <- httr2::req_body_json(request, body, digits = NA)
  if (!is.null(file)) request <- httr2::req_body_file(request, file, type = type)
  # A refusal says what to do: show its words, not only the status.
  request <- httr2::req_error(request, body = function(answer) {
    content <- tryCatch(httr2::resp_body_json(answer), error = function(e) list())
    detail <- content$detail
    if (is.character(detail)) detail else NULL
  })
  answer <- httr2::req_perform(request)
  if (httr2::resp_status(answer) == 204) return(invisible(NULL))
  if (grepl("json", httr2::resp_content_type(answer))) {
    httr2::resp_body_json(answer)
  } else {
    httr2::resp_body_string(answer)
  }
}

#' Pay for questions about a model, and wait for the signed answer
#'
#' `questions` is a list such as list(list(question = "auc", epsilon = "1/2")); `model` is the
#' identity of an upload (`ho_upload`), or a file: a linear model as .json, ONNX, or predictions.
#' `key` makes a repeated call free: what was paid with it before is fetched.
#' @export
ho_ask <- function(server, dataset, questions, model = NULL, key = ho_key(), patience = 600) {
  until <- Sys.time() + patience
  content <- list(dataset = dataset, questions = questions)
  if (!is.null(model)) content$artifact <- ho_sent(server, model, until)
  asked <- ho_evaluate(server, content, idempotency_key = key)
  while (asked$state == "waiting") {
    if (Sys.time() > until) stop("No answer yet. Ask again with key = \"", key, "\": it costs nothing more.")
    asked <- ho_show_evaluation(server, asked$id, prefer = "wait=10")
  }
  if (asked$state != "answered") stop(asked$words)
  asked
}

# Does not depend on set.seed: two questions must not share a key by chance.
ho_key <- function() {
  paste0(format(Sys.time(), "%Y%m%d%H%M%OS6"), "-", Sys.getpid(), "-", basename(tempfile("")))
}

ho_sent <- function(server, model, until) {
  if (!file.exists(model)) return(model)
  sent <- ho_upload(server, model, ho_type(model), name = basename(model))
  while (sent$state == "checking") {
    if (Sys.time() > until) stop("The server still looks at the model. Try again later.")
    sent <- ho_show_artifact(server, sent$id, prefer = "wait=10")
  }
  if (sent$state == "refused") stop(sent$words)
  sent$id
}

ho_type <- function(file) {
  types <- c(json = "application/json", onnx = "application/onnx", csv = "text/csv",
             parquet = "application/vnd.apache.parquet")
  type <- types[[tolower(tools::file_ext(file))]]
  if (is.null(type)) stop("The model must be a .json, .onnx, .csv or .parquet file.") else type
}
