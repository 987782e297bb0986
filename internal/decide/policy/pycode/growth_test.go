package pycode_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/pycode"
)

// allocated is how many bytes looking at a text allocates.
func allocated(code string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pycode.Scan(code)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestALookGrowsWithTheText: code is looked at before it runs, by the daemon and for whoever hands it over, so a
// text that is twice as long must not take four times as much. The control is code as people write it.
func TestALookGrowsWithTheText(t *testing.T) {
	for what, code := range map[string]func(bytes int) string{
		"control":            func(n int) string { return "import os\n" + strings.Repeat("print(os.getcwd())\n", n/19) },
		"an alias of itself": func(n int) string { return "import os as a\n" + strings.Repeat("a=a.x\n", n/6) },
		"a long alias, of itself": func(n int) string {
			return "import os as a\na=a." + strings.Repeat("x", n/2) + "\n" + strings.Repeat("a=a.x\n", n/12)
		},
		"a long alias that is used": func(n int) string {
			return "import os as a\na=a." + strings.Repeat("x", n/2) + "\n" + strings.Repeat("a.x\n", n/8)
		},
		"a long module that is used": func(n int) string {
			return "import " + strings.Repeat("x", n/2) + " as a\n" + strings.Repeat("a.x\n", n/8)
		},
		"imported of a module": func(n int) string {
			return "from " + strings.Repeat("x", n/2) + " import " + strings.Repeat("a,", n/4) + "b\n"
		},
		"format strings in each other": func(n int) string { return strings.Repeat(`f'{f"{`, n/6) },
		"braces that nobody closes":    func(n int) string { return `f"` + strings.Repeat("{", n) + `"` },
		"strings that nobody closes":   func(n int) string { return strings.Repeat("'\n", n/2) },
		"magic in magic":               func(n int) string { return strings.Repeat("%time ", n/6) },
		"lines for magic":              func(n int) string { return strings.Repeat("%time x\n", n/8) },
	} {
		const bytes = 96 << 10
		once, twice := allocated(code(bytes)), allocated(code(2*bytes))
		t.Logf("%s: %d kB, and %d kB of a text that is twice as long", what, once>>10, twice>>10)
		if twice > 3*once {
			t.Errorf("%s: a text of %d bytes takes %d kB, and one of twice as many %d kB", what, bytes, once>>10, twice>>10)
		}
	}
}
