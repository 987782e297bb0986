package requests

import (
	"net/http"
	"slices"
	"testing"
)

// heads is a writer that keeps the statuses that it is told.
type heads struct {
	http.ResponseWriter
	told []int
}

func (h *heads) WriteHeader(status int) { h.told = append(h.told, status) }

// TestGoOnIsSaidByTheServerAlone: the host's own 100 does not arrive, and its other early answers do.
func TestGoOnIsSaidByTheServerAlone(t *testing.T) {
	t.Parallel()
	to := &heads{}
	for _, status := range []int{http.StatusContinue, http.StatusEarlyHints, http.StatusContinue, http.StatusOK} {
		once{to}.WriteHeader(status)
	}
	if !slices.Equal(to.told, []int{http.StatusEarlyHints, http.StatusOK}) {
		t.Errorf("%d", to.told)
	}
}
