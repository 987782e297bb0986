package e2b

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestUnconfirmedSignals are told as such, with what to do; so is a command whose time was over and
// which may run on.
func TestUnconfirmedSignals(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		const sentence = "nobody confirmed it, and it may run on; end the sandbox"
		running := s.open(processService+"Start", shell("sleep 60"))
		kill := fmt.Sprintf(`{"process":{"pid":%d},"signal":9}`, running.started())
		s.boxes.Mute(fault.New(fault.ErrUnavailable, sentence))
		if status, body := s.ask(processService+"SendSignal", kill); status != http.StatusServiceUnavailable || !strings.Contains(body, sentence) {
			t.Errorf("a kill that nobody confirmed is told as %d %s", status, body)
		}
		s.boxes.Mute(nil)
		s.box.Commands.EndWith(channel.Exit{Code: 137, Signal: "KILL", TimedOut: true, Error: sentence})
		if _, problem := running.finish(); problem == nil || problem.Code != codeDeadline || !strings.Contains(problem.Message, sentence) {
			t.Errorf("one that may run on is told as %+v", problem)
		}
		s.boxes.Mute(fault.New(fault.ErrUnavailable, sentence)) // else its end may come before its stream's time is over
		late := s.open(processService+"Start", shell("sleep 60"), "Connect-Timeout-Ms", "50")
		late.started()
		if _, problem := late.finish(); problem == nil || problem.Code != codeDeadline || strings.Contains(problem.Message, "was killed") || !strings.Contains(problem.Message, "confirmed") {
			t.Errorf("one whose time is over is told as %+v", problem)
		}
	})
}
