package e2b

import (
	"net/http"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Sentences of 502 that are protocol: clients find out by them whether a sandbox is gone (or sleeps), so
// that making or resuming one helps, or runs without the port that they ask for. They look for "was not
// found" and "port is not open". All sentences of this kind are here.
const (
	// TextNotFound is of a sandbox that is not there, or not any more.
	TextNotFound = "The sandbox was not found"
	// TextPaused is of one on disk. Nothing but connecting helps, so that it is as good as not found.
	TextPaused = "The sandbox was not found among those that run: it is paused; connect to it, and it goes on"
	// TextSilent is of one on disk whose agent did not answer when it was paused: connecting alone does not help.
	TextSilent = "The sandbox was not found among those that run: it is paused, and its agent did not answer then; connect to it with memory: false, and it starts anew on its files"
	// TextPortClosed is of one that runs, at whose port nobody listens. Which port is beside it.
	TextPortClosed = "The sandbox is running but port is not open"
)

// Headers by which clients decide whether they ask again by themselves, and when.
const (
	headerRetryAfter  = "Retry-After"  // whole seconds
	headerShouldRetry = "Should-Retry" // "true" or "false"; without it clients repeat 429, 502, 503 and 504
)

// tellRetry tells a client whether to ask again, as far as that is known: an error that says when the same
// may succeed is worth it; where only the client can make room it is not, whatever clients do with a 429
// that says nothing. A 503 may be over soon, and says nothing.
func tellRetry(h http.Header, status int, err error) {
	switch wait := backend.RetrySeconds(err); {
	case wait > 0 && retried(status):
		TellWait(h, wait)
	case status == http.StatusTooManyRequests:
		h.Set(headerShouldRetry, "false")
	}
}

// mostSilence is how many seconds a client is to wait within one of its calls, without a word to its caller.
// It is the longest that the SDKs wait by themselves.
const mostSilence = 10

// TellWait tells a client to ask again in so many seconds: by itself, or, where that is long, if whoever
// called it still wants to.
func TellWait(h http.Header, seconds int) {
	h.Set(headerRetryAfter, strconv.Itoa(seconds))
	h.Set(headerShouldRetry, strconv.FormatBool(seconds <= mostSilence))
}

// retried are the statuses of errors that may say when the same succeeds. A conflict is one where a request
// with the same key is under way.
func retried(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == http.StatusConflict
}
