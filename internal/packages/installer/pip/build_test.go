package pip

import (
	"slices"
	"testing"
)

func TestBuildSource(t *testing.T) {
	t.Parallel()
	got := client{}.BuildSource("https://files.example/foo-1.0.tar.gz", "abc", "/var/tmp/built")
	if !slices.Contains(got, "https://files.example/foo-1.0.tar.gz#sha256=abc") || !slices.Contains(got, "--no-deps") || !slices.Contains(got, "/var/tmp/built") {
		t.Errorf("it is %q", got)
	}
	if asked, ok := (client{}).Asks(got); !ok || len(asked) == 0 {
		t.Errorf("it is no install of pip's own: %q", asked)
	}
}

func TestComplaint(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"": "", "error: no space": "",
		"  error: subprocess-exited-with-error\n  ╰─> [2 lines of output]\n      running bdist\n      needs a compiler\n      [end of output]\n\n  note: not pip\nhint: See above for details.\n": "needs a compiler",
		"[end of output]": "",
	} {
		if got := (client{}).Complaint(output); got != want {
			t.Errorf("of %q it is %q", output, got)
		}
	}
}
