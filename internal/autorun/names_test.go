package autorun_test

import (
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/autorun"
)

// TestOtherFilesThatRunByThemselves: what build.rs and pom.xml are to their editors, these are to theirs. Nothing says
// a word about them.
func TestOtherFilesThatRunByThemselves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, why string
		least     autorun.Level
	}{
		{"build.rs", "control", autorun.Started},
		{"pom.xml", "control", autorun.Used},
		{"jupyter_server_config.py", "control", autorun.Started},
		{"jupyter_server_config.json", "jupyter reads it beside the .py, from the directory it is started in", autorun.Started},
		{"jupyter_notebook_config.json", "the same", autorun.Started},
		{"app/App.csproj", "Visual Studio and the C# extension build at design time when it is opened: Exec tasks run", autorun.Used},
		{"app/App.vcxproj", "the same", autorun.Used},
		{"Directory.Build.props", "MSBuild imports it into every project below", autorun.Used},
		{"Directory.Build.targets", "the same", autorun.Used},
		{"binding.gyp", "npm install runs node-gyp for it, which runs <!(commands)", autorun.Used},
		{"WORKSPACE", "bazel, by its old names", autorun.Used},
		{"pkg/BUILD", "the same", autorun.Used},
		{".own.props", "hidden, whatever it ends in", autorun.Hidden},
	} {
		if level := autorun.Know(slices.Values([]string{c.name})).Level(c.name); level < c.least {
			t.Errorf("%s is of level %d, want at least %d: %s", c.name, level, c.least, c.why)
		}
	}
	// The control: a directory of such a name says nothing of what is in it.
	if level := autorun.Know(slices.Values([]string{"build/out.txt"})).Level("build/out.txt"); level != autorun.Plain {
		t.Errorf("build/out.txt is of level %d", level)
	}
}
