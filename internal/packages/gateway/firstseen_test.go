package gateway_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// TestAPageTellsNoTimeOfAnothersAsking: of a release whose registry says no time a run reads none that depends on whether
// another run asked for its page. Both may have the page, and no policy's ages count from when a file was seen.
func TestAPageTellsNoTimeOfAnothersAsking(t *testing.T) {
	t.Parallel()
	told := func(askedBefore bool) (string, time.Time) {
		b := newNodeBench(t, func(b *bench, _ *upstream.Config) { b.cfg.Limits.Fresh = 0 })
		foo := npmtest.Pack(t, "foo", "1.0.0", nil)
		foo.Time = time.Time{}
		b.nodePublish(indexHost, nil, foo)
		if askedBefore {
			if a := b.do(sandboxA, http.MethodGet, "https://"+indexHost+"/foo"); a.StatusCode != http.StatusOK {
				t.Fatalf("INCONCLUSIVE: %s", status(a))
			}
			b.age(t, "foo", 24*time.Hour)
		}
		a := b.do(sandboxB, http.MethodGet, "https://"+indexHost+"/foo")
		var page struct {
			Versions map[string]any
			Time     map[string]time.Time
		}
		if err := json.Unmarshal([]byte(a.body), &page); a.StatusCode != http.StatusOK || err != nil || page.Versions["1.0.0"] == nil {
			t.Fatalf("INCONCLUSIVE: %s (%v)", status(a), err)
		}
		return a.body, page.Time["1.0.0"]
	}
	alone, first := told(false)
	after, second := told(true)
	if alone != after || !first.Equal(second) {
		t.Errorf("alone the run reads\n%s\nand after another one\n%s", alone, after)
	}
}
