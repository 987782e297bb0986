package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// inStorm is how many clients come at one time.
const inStorm = 50

// TestStormOfCreates: fifty clients at one time create a sandbox each, use it and
// destroy it. Each gets its own, and nothing is left. COFFERDAM_LONG is twenty storms.
func TestStormOfCreates(t *testing.T) {
	rounds := 1
	if os.Getenv("COFFERDAM_LONG") != "" {
		rounds = 20
	}
	in := start(t, "default_template: debian\n")
	in.warmUp(t)
	before := in.settled(t)
	made := map[string]bool{}
	for round := range rounds {
		since := time.Now()
		var mu sync.Mutex // guards made
		group, ctx := errgroup.WithContext(t.Context())
		for range inStorm {
			group.Go(func() error {
				id, err := useOnce(ctx, in.Client)
				mu.Lock()
				defer mu.Unlock()
				if made[id] {
					return fmt.Errorf("%s was made twice", id)
				}
				made[id] = true
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatalf("in storm %d: %v", round+1, err)
		}
		t.Logf("storm %d: %d sandboxes in %v", round+1, inStorm, time.Since(since).Round(time.Millisecond))
	}
	if len(made) != rounds*inStorm {
		t.Errorf("%d sandboxes were made, want %d", len(made), rounds*inStorm)
	}
	in.wantOneEnd(t)
	if all := in.wantAgreement(t); len(all) > 0 {
		t.Errorf("%v are left", all)
	}
	in.wantBack(t, before)
}

// useOnce leads one sandbox through a short life.
func useOnce(ctx context.Context, c *client.Client) (id string, err error) {
	sb, err := c.CreateSandbox(ctx, plain())
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	got, err := execute(ctx, c, sb.ID, "hostname")
	if err != nil || strings.TrimSpace(got.Stdout) != sb.ID {
		return sb.ID, fmt.Errorf("its host name is %q, want %s: %w", got.Stdout, sb.ID, err)
	}
	if err := c.DestroySandbox(ctx, sb.ID); err != nil {
		return sb.ID, fmt.Errorf("destroy: %w", err)
	}
	return sb.ID, nil
}

// TestManyEndAtOnce: many sandboxes whose time is over at the same moment are each
// destroyed once, for that reason, and nothing is left. COFFERDAM_LONG is two hundred.
func TestManyEndAtOnce(t *testing.T) {
	many := 40
	if os.Getenv("COFFERDAM_LONG") != "" {
		many = 200
	}
	in := start(t, "default_template: debian\n")
	in.warmUp(t)
	before, past := in.settled(t), len(in.events(t))
	ids := make([]string, many)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for i := range ids {
		group.Go(func() error {
			sb, err := in.Client.CreateSandbox(ctx, plain())
			ids[i] = sb.ID
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if all := in.wantAgreement(t); len(all) != many {
		t.Fatalf("%d sandboxes are there, want %d", len(all), many)
	}
	since := time.Now()
	group, ctx = errgroup.WithContext(t.Context())
	for _, id := range ids {
		group.Go(func() error {
			_, err := in.Client.SetLifetime(ctx, id, api.Lifetime{TTLSeconds: 2})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	until(t, "all have ended", func() bool {
		all, err := in.Client.Sandboxes(t.Context())
		return err == nil && len(all) == 0
	})
	t.Logf("%d sandboxes with two seconds to live are gone after %v", many, time.Since(since).Round(time.Millisecond))
	for _, e := range in.events(t)[past:] {
		if e.To == sandbox.Failed || e.To == sandbox.Destroying && e.Reason != "its time is over" || !slices.Contains(ids, e.Sandbox) {
			t.Errorf("there is the event %+v", e)
		}
	}
	in.wantOneEnd(t)
	if all := in.wantAgreement(t); len(all) > 0 {
		t.Errorf("%v are left", all)
	}
	in.wantBack(t, before)
}

// TestQuotaHoldsInAStorm: of fifty requests that a token makes at one time as many
// come to something as its quota says, and the others are told why not.
func TestQuotaHoldsInAStorm(t *testing.T) {
	const quota = 5
	in := start(t, "default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\n")
	in.warmUp(t)
	before := in.settled(t)
	remote, _, _ := in.clientOf(t, api.MakeToken{Name: "one", Quota: api.Quota{Sandboxes: quota}})
	create := func() (string, error) {
		sb, err := remote.CreateSandbox(t.Context(), api.CreateSandbox{Linger: true})
		return sb.ID, err
	}
	ids, errs := make([]string, inStorm), make([]error, inStorm)
	var clients sync.WaitGroup
	for i := range ids {
		clients.Go(func() { ids[i], errs[i] = create() })
	}
	clients.Wait()
	for _, err := range errs {
		if err != nil && (client.StatusOf(err) != http.StatusTooManyRequests || !strings.Contains(err.Error(), "its quota is 5")) {
			t.Errorf("a client was told %v", err)
		}
	}
	made := slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	if all := in.wantAgreement(t); len(made) != quota || len(all) != quota {
		t.Fatalf("%v were made and %d are there, want %d", made, len(all), quota)
	}
	if err := remote.DestroySandbox(t.Context(), made[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := create(); err != nil {
		t.Errorf("in place of one that is gone there can't be another: %v", err)
	}
	if _, err := create(); client.StatusOf(err) != http.StatusTooManyRequests {
		t.Errorf("one more than the quota: %v", err)
	}
	in.clear(t)
	in.wantOneEnd(t)
	in.wantBack(t, before)
}
