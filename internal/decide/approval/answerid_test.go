package approval_test

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestParseAnswerID: an id alone, or with a revision; a revision of nothing is refused.
func TestParseAnswerID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"ap-k3m7qx": 0, "ap-k3m7qx@2": 2} {
		if id, revision, err := approval.ParseAnswerID(text); err != nil || id != "ap-k3m7qx" || revision != want {
			t.Errorf("%s: %s, %d, %v", text, id, revision, err)
		}
	}
	for _, text := range []string{"@1", "ap-k3m7qx@", "ap-k3m7qx@0", "ap-k3m7qx@x", "@"} {
		if _, _, err := approval.ParseAnswerID(text); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
