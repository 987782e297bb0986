package building_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maker builds as a function says, and counts.
type maker struct {
	do func(ctx context.Context, job building.Job, to io.Writer) error

	mu    sync.Mutex
	began int
	now   int
	most  int
}

// Make implements building.Maker.
func (m *maker) Make(ctx context.Context, job building.Job, to io.Writer) (building.Origin, error) {
	m.mu.Lock()
	m.began++
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.now--
		m.mu.Unlock()
	}()
	return building.Origin{Run: "build-" + job.Key}, m.do(ctx, job, to)
}

func (m *maker) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began
}

func desk(t *testing.T, m *maker, timeout time.Duration) *building.Desk {
	t.Helper()
	dir := t.TempDir()
	d := building.NewDesk(building.Config{Maker: m, Dir: dir, Timeout: timeout})
	t.Cleanup(func() {
		d.Close()
		// A build that nobody waits for any more may still be on its way out.
		eventually(t, "no file is left", func() bool {
			left, err := os.ReadDir(dir)
			return err == nil && len(left) == 0
		})
	})
	return d
}

func text(s string) func(context.Context, building.Job, io.Writer) error {
	return func(_ context.Context, _ building.Job, to io.Writer) error {
		_, err := io.WriteString(to, s)
		return err
	}
}

// TestMadeIsRead: in pieces, up to its end, and by its digest alone.
func TestMadeIsRead(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("wheel", 300_000)
	d := desk(t, &maker{do: text(whole)}, 0)
	r, err := d.Do(t.Context(), building.Job{Key: "a", Payer: "sb"})
	if err != nil || r.Size != int64(len(whole)) || r.Run != "build-a" {
		t.Fatalf("%+v, %v", r, err)
	}
	var got []byte
	for {
		piece, err := d.Read(r.SHA256, int64(len(got)))
		if err != nil {
			t.Fatal(err)
		}
		if len(piece) == 0 {
			break
		}
		got = append(got, piece...)
	}
	if string(got) != whole {
		t.Error("it is something else")
	}
	if _, err := d.Read(strings.Repeat("0", 64), 0); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("another digest: %v", err)
	}
	if _, err := d.Read(r.SHA256, int64(len(whole))+1); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("past its end: %v", err)
	}
}

// TestOneBuildForAll: those who want the same wait for one build, which ends when nobody
// wants it any more.
func TestOneBuildForAll(t *testing.T) {
	t.Parallel()
	proceed, ended := make(chan struct{}), make(chan error, 2)
	m := &maker{do: func(ctx context.Context, _ building.Job, to io.Writer) error {
		select {
		case <-proceed:
		case <-ctx.Done():
			ended <- ctx.Err()
			return ctx.Err()
		}
		_, err := io.WriteString(to, "x")
		return err
	}}
	d := desk(t, m, 0)
	first, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := d.Do(first, building.Job{Key: "a", Payer: "sb1"})
		gone <- err
	}()
	eventually(t, "it began", func() bool { return m.count() == 1 })
	var wg sync.WaitGroup
	second, leave := context.WithCancel(t.Context())
	wg.Go(func() { _, _ = d.Do(second, building.Job{Key: "a", Payer: "sb2"}) })
	cancel() // the first goes; who else waits may not have come yet
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who went got %v", err)
	}
	leave()
	wg.Wait()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the build ended with %v", err)
	}
	close(proceed)
	for range 3 {
		wg.Go(func() {
			if _, err := d.Do(t.Context(), building.Job{Key: "b", Payer: "sb"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestFewAtOnce: and one for each payer.
func TestFewAtOnce(t *testing.T) {
	t.Parallel()
	m := &maker{do: text("x")}
	d := desk(t, m, 0)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if _, err := d.Do(t.Context(), building.Job{Key: string(rune('a' + i)), Payer: string(rune('A' + i%6))}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m.count() != 12 || m.most > 2 {
		t.Errorf("%d builds, %d at once", m.count(), m.most)
	}
}

// TestBounds: what is empty, too large or too slow is a failure, and nothing of it is kept.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do      func(context.Context, building.Job, io.Writer) error
		timeout time.Duration
		says    string
	}{
		"empty": {text(""), 0, "empty"},
		"too large": {func(_ context.Context, _ building.Job, to io.Writer) error {
			block := make([]byte, 1<<20)
			for range door.MaxBuilt>>20 + 1 {
				if _, err := to.Write(block); err != nil {
					return err
				}
			}
			return nil
		}, 0, "larger than 64 MiB"},
		"too slow": {func(ctx context.Context, _ building.Job, _ io.Writer) error {
			<-ctx.Done()
			return ctx.Err()
		}, time.Millisecond, "took longer"},
		"its own": {func(context.Context, building.Job, io.Writer) error {
			return &building.Failure{Sentence: "its build failed", Output: "boom"}
		}, 0, "its build failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := desk(t, &maker{do: tt.do}, tt.timeout)
			_, err := d.Do(t.Context(), building.Job{Key: "a", Payer: "sb"})
			if failed, ok := errors.AsType[*building.Failure](err); !ok || !strings.Contains(failed.Sentence, tt.says) {
				t.Errorf("it is %v", err)
			}
		})
	}
}

// TestAPanicIsAnError of that build, and the next one goes on.
func TestAPanicIsAnError(t *testing.T) {
	t.Parallel()
	m := &maker{do: func(_ context.Context, job building.Job, to io.Writer) error {
		if job.Key == "bad" {
			panic("boom")
		}
		_, err := io.WriteString(to, "x")
		return err
	}}
	d := desk(t, m, 0)
	if _, err := d.Do(t.Context(), building.Job{Key: "bad", Payer: "sb"}); err == nil {
		t.Error("there is no error")
	}
	if _, err := d.Do(t.Context(), building.Job{Key: "good", Payer: "sb"}); err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.Fatalf("it never came about that %s", what)
		case <-time.NewTimer(time.Millisecond).C:
		}
	}
}
