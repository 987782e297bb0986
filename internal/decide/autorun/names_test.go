package autorun_test

import (
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
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
		{"flake.lock", "direnv evaluates the sources that it pins, with what flake.nix says, at the next prompt", autorun.Started},
		{"sub/nix/sources.json", "the same for niv", autorun.Started},
		{"devenv.lock", "the same for devenv", autorun.Started},
		{"pixi.lock", "the same for pixi", autorun.Started},
		{"lean-toolchain", "elan fetches and runs it when a file is opened", autorun.Started},
		{"lakefile.lean", "the language's server elaborates it", autorun.Started},
		{"config.nims", "nimsuggest executes it", autorun.Started},
		{"project.clj", "clojure-lsp runs lein for the class path", autorun.Started},
		{"deps.edn", "the same by clojure", autorun.Started},
		{"latexmkrc", "Perl, which LaTeX's editors run for each build", autorun.Started},
		{"phpcs.xml.dist", "its autoload is required while somebody types", autorun.Started},
		{"uno.config.ts", "its extension loads it", autorun.Started},
		{"Steepfile", "Ruby, which its server evaluates", autorun.Started},
		{"Manifest.toml", "Julia's extension loads packages by its paths", autorun.Started},
		{"wallaby.js", "its extension loads it", autorun.Started},
		{"zls.build.json", "names a build runner", autorun.Started},
		{"OpenCode.md", "that agent reads it", autorun.Instructing},
		{"AmazonQ.md", "the same", autorun.Instructing},
		{"Setup.hs", "cabal compiles and runs it", autorun.Used},
		{"compose.override.yaml", "docker compose reads it beside compose.yaml", autorun.Used},
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
