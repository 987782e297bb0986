package daemon

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAForcedStopTakesSandboxesAwaySideBySide: each may wait for what it asked for at last, and a daemon that is to end for as long as a few
// of them do, not for as long as all. One that can't be taken away keeps none of the others.
func TestAForcedStopTakesSandboxesAwaySideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 5 * time.Second
		all := make([]int, 3*destroysAtOnce)
		for i := range all {
			all[i] = i
		}
		var mu sync.Mutex
		under, most, tried := 0, 0, 0
		begun := time.Now()
		err := destroyAll(all, func(one int) error {
			mu.Lock()
			under, tried = under+1, tried+1
			most = max(most, under)
			mu.Unlock()
			time.Sleep(each)
			mu.Lock()
			under--
			mu.Unlock()
			switch one {
			case 3:
				return errors.New("the third is stuck")
			case 7:
				panic("the seventh")
			}
			return nil
		})
		if took := time.Since(begun); took != 3*each || most != destroysAtOnce || tried != len(all) {
			t.Errorf("%d of %d are tried in %s, %d at a time", tried, len(all), took, most)
		}
		if err == nil || !strings.Contains(err.Error(), "the third is stuck") || len(strings.Split(err.Error(), "\n")) != 2 {
			t.Errorf("%v", err)
		}
	})
}
