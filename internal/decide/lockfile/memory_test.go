package lockfile_test

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// lives are the bytes of the heap that live, as the collector saw them last.
func lives() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// mostLiving is the most that lives on the heap while something is done, beyond what lived before.
func mostLiving(do func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(5)) // so that it is seen often
	debug.FreeOSMemory()
	before := lives()
	most := before
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				most = max(most, lives())
			}
		}
	})
	do()
	close(over)
	watching.Wait()
	return most - before
}

// keys are lines of YAML with a key each that no other has.
func keys(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, " key-%d: value\n", i)
	}
	return all.String()
}

// TestALockfileTakesNoMoreThanItsRoom: a token may send lockfiles with a create, which the daemon reads whole,
// before it knows whether they are some. What that takes is of no room: backend.RoomAll is what the requests of
// all may have under way. The control is one of the same length of which little is kept.
func TestALockfileTakesNoMoreThanItsRoom(t *testing.T) {
	const size = 6 << 20
	pnpm := "lockfileVersion: '9.0'\nx:\n"
	filled := func(before, each string) []byte {
		return []byte(before + strings.Repeat(each, (size-len(before))/len(each)))
	}
	for what, c := range map[string]struct {
		name string
		text []byte
	}{
		"control":                 {"/p/requirements.txt", filled("", "# a comment\n")},
		"items":                   {"/p/pnpm-lock.yaml", filled(pnpm, "-\n")},
		"items in each other":     {"/p/pnpm-lock.yaml", filled(pnpm, "- - -\n")},
		"items in brackets":       {"/p/pnpm-lock.yaml", filled(pnpm+" [", "a,\n")},
		"pairs in brackets":       {"/p/pnpm-lock.yaml", filled(pnpm+" [", ":,\n")},
		"lists in brackets":       {"/p/pnpm-lock.yaml", filled(pnpm+" [", "[],\n")},
		"keys":                    {"/p/pnpm-lock.yaml", filled(pnpm, " ? \n")},
		"a second document":       {"/p/pnpm-lock.yaml", filled(pnpm+"---\n", "-\n")},
		"as many items as may be": {"/p/pnpm-lock.yaml", []byte(pnpm + strings.Repeat("-\n", 159_990))},
		"as many keys as may be":  {"/p/pnpm-lock.yaml", []byte(pnpm + keys(79_990))},
		"as many of TOML's items": {"/p/uv.lock", []byte("a = [" + strings.Repeat("0,\n", 199_990) + "]")},
		"TOML's keys in one":      {"/p/uv.lock", filled("", strings.Repeat("a.", 400_000)+"a = 1\n")},
		"JSON's items":            {"/p/package-lock.json", filled("[", "0,")},
		"JSON's lists":            {"/p/package-lock.json", filled("[", "[],")},
		"JSON's mappings":         {"/p/package-lock.json", filled("[", "{\"a\":1},")},
		"TOML's items":            {"/p/uv.lock", filled("a = [", "0,\n")},
		"TOML's tables":           {"/p/uv.lock", filled("", "[[a]]\n")},
	} {
		t.Run(what, func(t *testing.T) {
			var err error
			most := mostLiving(func() { _, err = lockfile.Parse(c.name, c.text) })
			t.Logf("%d bytes take %d MiB (%v)", len(c.text), most>>20, err)
			if most > backend.RoomAll {
				t.Errorf("one document of %d MiB takes %d MiB; the requests of all tokens together may hold %d", len(c.text)>>20, most>>20, backend.RoomAll>>20)
			}
		})
	}
}
