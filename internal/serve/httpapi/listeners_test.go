package httpapi

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestListenersAreBounded: one token does not keep the others from events, and what
// it ends it may begin again.
func TestListenersAreBounded(t *testing.T) {
	t.Parallel()
	var l listeners
	var leave func()
	for range maxListeners {
		var err error
		if leave, err = l.joinStream("tok-1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.joinStream("tok-1"); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("one too many: %v", err)
	}
	other, err := l.joinStream("tok-2")
	if err != nil {
		t.Errorf("another token: %v", err)
	}
	other()
	leave()
	if _, err := l.joinStream("tok-1"); err != nil {
		t.Errorf("after one ended: %v", err)
	}
	if len(l.streams) != 1 {
		t.Errorf("%v are kept", l.streams)
	}
}
