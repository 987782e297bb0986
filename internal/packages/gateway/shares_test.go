package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestFailingNamesOfOneGuestStopNoOther: a guest asks for names for which the
// registry fails; another installs beside it.
func TestFailingNamesOfOneGuestStopNoOther(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) {
		l := &c.Limits.Upstream
		l.BreakAfter, l.BreakFor, l.Attempts = 5, time.Hour, 1
	})
	b.publish(pypitest.Wheel(t, "good", "1.0"))
	for i := range 10 {
		b.page(fmt.Sprintf("bad%d", i), liar.Status(http.StatusInternalServerError))
		if a := b.do("sb-bad", http.MethodGet, fmt.Sprintf("https://%s/simple/bad%d/", indexHost, i)); a.StatusCode == http.StatusOK {
			t.Fatal(status(a))
		}
	}
	b.installs("good")
}

// installs asks for a project's index and its one file.
func (b *bench) installs(project string) {
	b.t.Helper()
	if a := b.get("/simple/" + project + "/"); a.StatusCode != http.StatusOK {
		b.t.Errorf("the index of %s: %s", project, status(a))
	}
	if a := b.get("/p/" + project + "-1.0-py3-none-any.whl"); a.StatusCode != http.StatusOK {
		b.t.Errorf("the file of %s: %s", project, status(a))
	}
}

// TestSlowNamesOfOneGuestDelayNoOther: a guest asks for many names that the
// registry never answers; another installs beside it, also what the first one
// asked for and waits for its turn.
func TestSlowNamesOfOneGuestDelayNoOther(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) {
		l := &c.Limits.Upstream
		l.HeaderWait, l.PageTime = time.Hour, time.Hour
		c.Limits.RefusedNames = 1000
	})
	b.publish(pypitest.Wheel(t, "good", "1.0"))
	b.publish(pypitest.Wheel(t, "wanted", "1.0"))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ask := func(project string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+indexHost+"/simple/"+project+"/", nil)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := b.client("sb-bad").Do(req); err == nil {
			resp.Body.Close()
		}
	}
	const slow = 40
	for i := range slow {
		project := fmt.Sprintf("slow%d", i)
		b.page(project, liar.Silence())
		go ask(project)
	}
	reached := func() (n int) {
		for i := range slow {
			n += b.registry.Count(fmt.Sprintf("%s/simple/slow%d/", indexHost, i))
		}
		return n
	}
	const share = 12 // of one guest, by default
	b.eventually("the slow names fill the guest's share", func() bool { return reached() >= share })
	go ask("wanted")
	b.eventually("the door owns the name that waits", func() bool { return b.door.askedFor("wanted") })
	b.installs("good")
	b.installs("wanted")
	if n := reached(); n > share {
		t.Errorf("%d slow names of one guest are asked for at a time, want at most %d", n, share)
	}
}
