package journal

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestARefusalSaysWhatEndsTheState: of a state that only a person ends, how.
func TestARefusalSaysWhatEndsTheState(t *testing.T) {
	t.Parallel()
	for state := range allowedMoves() {
		err := state.Refuse("sb1")
		if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "sb1 is "+string(state)) {
			t.Errorf("%s: %v", state, err)
		}
		if told := strings.Contains(err.Error(), "cofferdam resume sb1"); told != (state == Paused) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
