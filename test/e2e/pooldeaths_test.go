package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// inPool is how many sandboxes the pool holds ready.
const inPool = 2

// TestDaemonWithAPoolDies: a daemon that holds sandboxes ready dies while it gives one
// of them to a client. What nobody has been given is gone with it, of what was given
// there is one or none, and nothing is left on the host.
func TestDaemonWithAPoolDies(t *testing.T) {
	t.Parallel()
	points := []faultpoint.Point{faultpoint.CreateRunning}
	if os.Getenv("COFFERDAM_LONG") != "" {
		points = append(points, faultpoint.CreateConfigured, faultpoint.CreateJournaled, faultpoint.CreateRegistered, faultpoint.CreateRecorded, faultpoint.CreateLaunched,
			faultpoint.CreateRemembered, faultpoint.CreateListed)
	}
	const without = "default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\n"
	in := start(t, without)
	t.Cleanup(func() { in.revive(t) })
	in.warmUp(t)
	token, err := in.Client.MakeToken(t.Context(), api.MakeToken{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	before := in.settled(t)
	for _, point := range points {
		t.Run(string(point), func(t *testing.T) {
			in.configure(t, without+fmt.Sprintf("pool: [ { template: debian, size: %d } ]\n", inPool))
			var members []string
			in.crashAt(t, point, func(ctx context.Context) error {
				var err error
				if members, err = in.filled(ctx); err != nil {
					return err
				}
				return in.claim(ctx, token.Secret)
			})
			in.configure(t, without)
			in.launch(t)
			in.answers(t)
			all, want := in.wantAgreement(t), 0
			if point == faultpoint.CreateRunning {
				want = 1
			}
			if len(all) != want || len(members) != inPool {
				t.Errorf("%d sandboxes are there, want %d; the pool had %v", len(all), want, members)
			}
			if log := string(in.log()); strings.Contains(log, "is not kept any more") || !strings.Contains(log, "nobody had claimed it") {
				t.Errorf("of what nobody had claimed the next daemon says:\n%s", log)
			}
			for _, s := range all {
				if !slices.Contains(members, s.ID) || s.State != "running" {
					t.Errorf("it was not in the pool, which had %v, or does not run: %+v", members, s)
				}
				in.wantUse(t, s, "")
			}
			in.clear(t)
			in.wantBack(t, before, members...)
			in.wantOneEnd(t)
		})
		if t.Failed() {
			return // what is left of one would be found by all the others
		}
	}
}

// TestPoolOfAWire: a token that asks /v1 is given what is ready for that wire, and one
// that asks as the SDKs do is not.
func TestPoolOfAWire(t *testing.T) {
	t.Parallel()
	in := start(t, fmt.Sprintf("default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\npool: [ { size: %d, wire: v1 } ]\n", inPool))
	members, err := in.filled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remote, _, key := in.clientOf(t, api.MakeToken{Name: "one"})
	made, err := remote.CreateSandbox(t.Context(), api.CreateSandbox{})
	if err != nil || !slices.Contains(members, made.ID) {
		t.Fatalf("out of the pool with %v came %+v, %v", members, made, err)
	}
	in.wantUse(t, made, "")
	full, err := in.filled(t.Context())
	if err != nil {
		t.Fatalf("the pool is not filled again: %v", err)
	}
	if err := in.claim(t.Context(), key); !strings.Contains(err.Error(), "status 201") {
		t.Fatal(err)
	}
	if still, err := in.filled(t.Context()); err != nil || !slices.Equal(slices.Sorted(slices.Values(full)), slices.Sorted(slices.Values(still))) {
		t.Errorf("the pool had %v, and after a request over another wire %v, %v", full, still, err)
	}
	in.clear(t)
}

// configure is for the next daemon.
func (in *installation) configure(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(in.State, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// filled waits until the pool is, and returns what is in it: what the keeper holds
// stopped, since no sandbox is paused.
func (in *installation) filled(ctx context.Context) ([]string, error) {
	if err := in.ready(ctx); err != nil {
		return nil, err
	}
	var members []string
	err := poll(ctx, func() bool {
		members = nil
		held, err := keeper.Dial(in.paths().KeeperSocket()).List(ctx)
		for _, k := range held {
			if k.Frozen && !k.Moving {
				members = append(members, k.ID)
			}
		}
		return err == nil && len(members) == inPool
	})
	return members, err
}

// claim asks for a sandbox as the SDKs do: that is whom the pool is for.
func (in *installation) claim(ctx context.Context, key string) error {
	return in.ask(ctx, key, "/sandboxes", `{"templateID":"debian","timeout":300}`)
}

// ask posts to the wire that the SDKs speak. Its result says what it was told.
func (in *installation) ask(ctx context.Context, key, path, body string) error {
	version, err := in.Client.Version(ctx)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, version.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return fmt.Errorf("status %d: %s", resp.StatusCode, text)
}
