package npm

import (
	"slices"
	"testing"
)

func TestRunScripts(t *testing.T) {
	t.Parallel()
	got := client{}.BuildSource("https://files.example/foo/-/foo-1.0.0.tgz", "abc", "/var/tmp/built")
	if len(got) != 6 || !slices.Equal(got[3:], []string{"https://files.example/foo/-/foo-1.0.0.tgz", "abc", "/var/tmp/built"}) || len(runScripts) == 0 {
		t.Errorf("it is %q", got)
	}
	if s := (client{}).BuiltSuffix(); s != ".tgz" {
		t.Errorf("what is made ends in %q", s)
	}
}

func TestComplaint(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"": "", "the package can't be had: Forbidden\n": "",
		"\n> foo@1.0.0 postinstall\n> node x.js\n\nit needs a compiler\nnpm error code 1\nnpm error path /var/tmp/x\n": "it needs a compiler",
		"npm warn deprecated x\nnpm error code E403\n":                                                                 "",
		"gone\nnpm ERR! code 1\n": "gone",
	} {
		if got := (client{}).Complaint(output); got != want {
			t.Errorf("of %q it is %q", output, got)
		}
	}
}
