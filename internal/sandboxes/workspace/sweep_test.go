package workspace_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// TestSweepsWhileCopiesAreMade: other runs look for half copies all the time, and take none away that is just being made.
func TestSweepsWhileCopiesAreMade(t *testing.T) {
	t.Parallel()
	all, original := filepath.Join(t.TempDir(), "all"), t.TempDir()
	made, swept := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-made:
				swept <- nil
				return
			default:
			}
			if err := workspace.Sweep(all); err != nil {
				swept <- err
				return
			}
		}
	}()
	for i := range 1500 {
		w, err := workspace.Make(t.Context(), original, filepath.Join(all, fmt.Sprint(i)), nil)
		if err == nil {
			err = w.Remove()
		}
		if err != nil {
			t.Errorf("copy %d: %v", i, err)
			break
		}
	}
	close(made)
	if err := <-swept; err != nil {
		t.Error(err)
	}
}
