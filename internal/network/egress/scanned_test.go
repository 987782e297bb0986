package egress_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/scanning"
)

// scanDoor has one plan, and keeps what it is told.
type scanDoor struct {
	door.Door
	plan dlp.Plan
	mu   sync.Mutex // guards told
	told []door.FoundAsk
}

func (d *scanDoor) Scans(context.Context, door.ScansAsk) (door.ScansAnswer, error) {
	return door.ScansAnswer{Plan: d.plan}, nil
}

func (d *scanDoor) FoundInRequest(_ context.Context, ask door.FoundAsk) (door.FoundAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, ask)
	return door.FoundAnswer{RequestID: "f-1"}, nil
}

// TestRequestsAreScanned on their way through, over both versions, with their length told or
// not; a request that is blocked is answered, and the next one is not harmed.
func TestRequestsAreScanned(t *testing.T) {
	const token = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"
	long := strings.Repeat("text ", 50_000)
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		for plan, want := range map[dlp.Plan]string{
			{Secrets: dlp.Report}: long + token + " " + long, {Secrets: dlp.Redact}: long + strings.Repeat("*", len(token)) + " " + long, {Secrets: dlp.Block}: "",
		} {
			got, asks := &seen{}, &scanDoor{plan: plan}
			e := endAt(t, got, "api.example")
			sees, err := scanning.Exchanges{Door: asks, Set: func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }}.
				Exchange(t.Context(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
			if err != nil {
				t.Fatal(err)
			}
			e.door.exchange = sees
			c := e.client(t, http2)
			for _, body := range []io.Reader{strings.NewReader(long + token + " " + long), io.MultiReader(strings.NewReader(long + token + " " + long))} {
				status, said := ask(t, c, "POST", "https://api.example/good/a", body)
				if want == "" {
					if status != 403 || !strings.HasPrefix(said, "cofferdam: a request has in it (body) what looks like a secret (gitlab-token)") || !strings.Contains(said, "request f-1; see: cofferdam why (rule credentials.secret_scanning.requests)") {
						t.Errorf("%d %s", status, said)
					}
				} else if all := got.all(); status != 200 || len(all) == 0 || all[len(all)-1] != `POST api.example /good/a "`+want+`"` {
					t.Errorf("%+v: %d %s, and the host saw %d requests", plan, status, said, len(all))
				}
			}
			if status, _ := ask(t, c, "POST", "https://api.example/good/b", strings.NewReader("text")); status != 200 {
				t.Errorf("%+v: the next one is answered %d", plan, status)
			}
			if len(asks.told) == 0 || asks.told[0].Where != "body" || asks.told[0].Findings[0].At != int64(len(long)) {
				t.Errorf("%+v: told %+v", plan, asks.told)
			}
		}
	})
}
