package requests

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// doorTakes is how long a message about requests may be, in bytes.
const doorTakes = 256 << 10

// TestABatchIsAsShortAsTheDoorTakesIt: whatever its clients have made up. The control is the
// same without the cut.
func TestABatchIsAsShortAsTheDoorTakesIt(t *testing.T) {
	for _, letter := range []string{"a", "\x01", "\"", "\\", "<", "\u2028", "é", "\xff"} {
		text := strings.Repeat(letter, 64<<10)
		length := func(cut func(string, int) string) int {
			var some []door.RequestDone
			for range Batch {
				some = append(some, door.RequestDone{Method: cut(text, maxMethod), Path: cut(text, maxTold), Rule: cut(text, maxRule), Problem: cut(text, maxProblem)})
			}
			b, err := json.Marshal(door.RequestsDone{Sandbox: strings.Repeat("s", 64), Requests: some})
			if err != nil {
				t.Errorf("%q: %v", letter, err)
			}
			return len(b)
		}
		if n := length(toldOf); n > doorTakes/2 {
			t.Errorf("%q: %d bytes", letter, n)
		}
		if n := length(func(text string, _ int) string { return strings.ToValidUTF8(text, "?") }); letter != "\xff" && n <= doorTakes {
			t.Errorf("the control: %q: %d bytes", letter, n)
		}
	}
	if toldOf("GET", maxMethod) != "GET" || toldOf("/é", maxTold) != "/é" {
		t.Error("what is short changed")
	}
}
