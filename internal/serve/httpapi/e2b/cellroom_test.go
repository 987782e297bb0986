package e2b

import (
	"bufio"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/interpreter"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// roomLeft is how much room the owner of the stage's sandbox has, in MiB.
func (s *dataStage) roomLeft() int {
	ctx, leave := s.data.cfg.Room.Enter(s.t.Context(), "sandbox "+boxID)
	defer leave()
	n := 0
	for backend.Take(ctx, 1<<20) == nil {
		n++
	}
	return n
}

// TestCellsThatWaitTakeRoom: a cell that waits for its turn is held whole by the daemon, as long as its
// client likes. So it takes room of its token until its end, and past that the next one is refused.
func TestCellsThatWaitTakeRoom(t *testing.T) {
	s := newCellStage(t)
	goOn := filepath.Join(t.TempDir(), "go-on")
	all := s.roomLeft()
	var over sync.WaitGroup
	arrived := make(chan struct{}, 100)
	ask := func(body string) {
		over.Go(func() {
			if res, err := s.server.Client().Do(s.cellRequest("POST /execute", body, "token-"+boxID, "")); err == nil {
				_ = res.Body.Close() // the answer goes on
				if res.StatusCode != http.StatusOK {
					t.Errorf("a cell is answered %d", res.StatusCode)
					arrived <- struct{}{} // it never will
				}
			}
		})
	}
	defer over.Wait()
	defer func() { _ = os.WriteFile(goOn, nil, 0o600) }()
	s.data.cfg.Interpreter = interpreter.New(interpreter.Config{Log: slog.New(slog.DiscardHandler), Host: func(string) (interpreter.Host, error) {
		arrived <- struct{}{}
		return kernels{s}, nil
	}})
	ask(`{"code":"while [ ! -e ` + goOn + ` ]; do sleep 0.02; done","language":"bash"}`)
	<-arrived
	large := `{"code":"#` + strings.Repeat("x", 1<<20-8) + `","language":"bash","env_vars":{"FOO":"` + strings.Repeat("y", 1<<17) + `"}}`
	for i := range 5 { // of 16 MiB, and at a pace that nobody waits for
		ask(large)
		<-arrived // whole: from here on it waits
		if left := s.roomLeft(); left > all-i-2 {
			t.Errorf("%d cells of more than 1 MiB wait, and %d of %d MiB are left", i+1, left, all)
		}
	}
}

// TestCellsThatRunGiveTheirRoomBack: the kernel has the code, and the daemon keeps nothing of it, however long a cell
// runs.
func TestCellsThatRunGiveTheirRoomBack(t *testing.T) {
	s := newCellStage(t)
	all, goOn := s.roomLeft(), filepath.Join(t.TempDir(), "go-on")
	var over sync.WaitGroup
	defer over.Wait()
	defer func() { _ = os.WriteFile(goOn, nil, 0o600) }()
	body := `{"code":"echo begun; while [ ! -e ` + goOn + ` ]; do sleep 0.02; done #` + strings.Repeat("x", 1<<19) + `","language":"bash","env_vars":{"FOO":"` + strings.Repeat("y", 1<<17) + `"}}`
	res, err := s.server.Client().Do(s.cellRequest("POST /execute", body, "token-"+boxID, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); !strings.Contains(lines.Text(), "begun"); {
		if !lines.Scan() {
			t.Fatalf("INCONCLUSIVE: the cell did not begin (%v)", lines.Err())
		}
	}
	if left := s.roomLeft(); left != all {
		t.Errorf("while a cell of more than half a MiB runs, %d of %d MiB are left", left, all)
	}
}

// TestEnvironmentsOfCellsAreBounded by their bytes, and not by the body's alone.
func TestEnvironmentsOfCellsAreBounded(t *testing.T) {
	s := newCellStage(t)
	for size, want := range map[int]int{1 << 10: http.StatusOK, 1 << 20: http.StatusBadRequest} {
		res, err := s.server.Client().Do(s.cellRequest("POST /execute", fmt.Sprintf(`{"code":"true","language":"bash","env_vars":{"FOO":%q}}`, strings.Repeat("y", size)), "token-"+boxID, ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("an environment of %d bytes: %d, and not %d", size, res.StatusCode, want)
		}
	}
}

// TestMessagesOfACellGiveBackTheirOwn room, and not that of the cell.
func TestMessagesOfACellGiveBackTheirOwn(t *testing.T) {
	ctx, leave := backend.NewRoom().Enter(t.Context(), "ann")
	defer leave()
	if err := backend.Take(ctx, backend.RoomEach/2); err != nil {
		t.Fatal(err)
	}
	room := &cellRoom{ctx: ctx}
	for range 3 {
		if err := room.takeBytes(backend.RoomEach / 2); err != nil {
			t.Fatal(err)
		}
		if room.takeBytes(1) == nil {
			t.Error("there is more than the token's room")
		}
		room.giveBytes()
	}
	if err := room.takeBytes(backend.RoomEach/2 + 1); !isExhausted(err) {
		t.Errorf("the cell's own room was given back: %v", err)
	}
}

func isExhausted(err error) bool { return fault.KindOf(err).Status == http.StatusTooManyRequests }

// TestLaunchesAreBoundedByWhatTheyTake: what is kept of a command for the list is bounded by what that
// takes, and not by the bytes of its words alone: those that are empty take room, too.
func TestLaunchesAreBoundedByWhatTheyTake(t *testing.T) {
	const launched = 200 // of a sandbox's 256
	before := heapNow()
	s := newDataStage(t)
	for i := range launched {
		what := launch{config: processConfig{Cmd: "/bin/true", Args: make([]string, 80_000)}} // in JSON 240 KB: a command may have 256 KiB
		s.data.launched.putLaunch(boxID, fmt.Sprint("c", i), what.briefLaunch())
	}
	if held := heapNow() - before; held > launched*2*maxLaunch {
		t.Errorf("%d commands of one sandbox hold %d MiB; each may have %d KiB kept", launched, held>>20, maxLaunch>>10)
	}
	if len(s.data.launched.boxes[boxID]) != launched {
		t.Errorf("%d are kept", len(s.data.launched.boxes[boxID]))
	}
	for _, config := range []processConfig{
		{Cmd: "/bin/true", Args: []string{"a", strings.Repeat("x", maxLaunch/2)}, Envs: map[string]string{"A": "b"}},
		{Cmd: "/bin/true", Args: []string{strings.Repeat("x", maxLaunch+1)}},
		{Cmd: "/bin/true", Envs: map[string]string{"A": strings.Repeat("x", maxLaunch+1)}},
	} {
		kept, small := launch{config: config}.briefLaunch().config, backend.SizeOf(config) < maxLaunch
		if small != (len(kept.Args)+len(kept.Envs) > 0) || kept.Cmd != config.Cmd {
			t.Errorf("of a command of %d bytes %d words are kept", backend.SizeOf(config), len(kept.Args))
		}
	}
}
