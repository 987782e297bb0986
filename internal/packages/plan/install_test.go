package plan_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
)

func TestInstallsAreFoundInCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv []string
		want string // "DIR: WORDS", with "; " between
	}{
		{[]string{"pip", "install", "rich"}, "/w: pip install rich"},
		{[]string{"/w/.venv/bin/pip", "install", "rich"}, "/w: /w/.venv/bin/pip install rich"},
		{[]string{"env", "A=b", "npm", "i", "express"}, "/w: npm i express"},
		{[]string{"bash", "-l", "-c", "pip install 'rich>13' \"six\""}, "/w: pip install rich>13 six"},
		{[]string{"sh", "-c", "cd /job && npm install -q express 2>&1 >/dev/null; code=$?; exit $code"}, "/job: npm install -q express"},
		{[]string{"sh", "-c", "cd sub\npip install a || pip install b | cat"}, "/w/sub: pip install a; /w/sub: pip install b"},
		{[]string{"sh", "-ec", "PIP_NO_INPUT=1 pip install uvicorn[standard]"}, "/w: pip install uvicorn[standard]"},
		{[]string{"sh", "-c", "pip install $NAME && pip install six"}, "/w: pip install six"},
		{[]string{"sh", "-c", "pip install `cat x`"}, ""},
		{[]string{"sh", "-c", "pip install \"a$b\""}, ""},
		{[]string{"sh", "-c", "pip install *.whl"}, ""},
		{[]string{"sh", "-c", "pip install 'a"}, ""},
		{[]string{"sh", "install.sh"}, ""},
		{[]string{"sh", "-c", "# first; pip install a\npip install b # it's; pip install c\npip install d#e"}, "/w: pip install b"},
		{[]string{"sh", "-c", "pip install a; cat <<EOF\npip install b\nEOF\n"}, "/w: pip install a"},
		{[]string{"sh", "-c", "echo \"say \\\"; pip install a; \\\"\"; pip install b"}, ""},
		{[]string{"sh", "-c", "echo \"$(cat \"x; pip install a; y\")\""}, ""},
		{[]string{"sh", "-c", "echo $'it\\'; pip install a; \\''"}, ""},
		{[]string{"sh", "-c", "echo \\; pip install a\npip install b"}, "/w: pip install b"},
		{[]string{"sh", "-c", "echo \\\npip install a"}, ""},
		{[]string{"sh", "-c", "pip install a; cd \"$D\"; pip install b"}, "/w: pip install a"},
		{[]string{"sh", "-c", "cd; pip install b"}, ""},
		{[]string{"sh", "-c", "cd -; pip install b"}, ""},
		{[]string{"sh", "-c", "if x; then cd a; fi; pip install b"}, ""},
		{[]string{"sh", "-c", "(cd a && pip install x); pip install b"}, ""},
		{[]string{"sh", "-c", "cd a & pip install b"}, ""},
		{[]string{"sh", "-c", "x | cd a; pip install b"}, ""},
		{[]string{"sh", "-c", "cd a || exit; pip install b"}, "/w/a: pip install b"},
		{[]string{"sh", "-c", "PIP_INDEX_URL=x pip install a; CI=1 pip install b"}, "/w: pip install b"},
		{[]string{"sh", "-c", "pip install a; export PIP_INDEX_URL=x; pip install b"}, "/w: pip install a"},
		{[]string{"sh", "-c", "pip install a; PIP_INDEX_URL=x; pip install b"}, "/w: pip install a"},
		{[]string{"env", "PIP_INDEX_URL=x", "pip", "install", "a"}, ""},
		{[]string{"sh", "-c", "env PIP_INDEX_URL=x pip install a; env CI=1 pip install b"}, "/w: pip install b"},
		{[]string{"sh", "-c", "pip install a; declare -x PIP_INDEX_URL=x; pip install b"}, "/w: pip install a"},
		{[]string{"sh", "-c", "pip install a; f() {\npip install b\n}"}, "/w: pip install a"},
		{[]string{"sh", "-c", "pip install a; function f {\npip install b\n}"}, "/w: pip install a"},
		{[]string{"sh", "-c", "pip install a; if false; then\npip install b\nfi"}, "/w: pip install a"},
		{[]string{"sh", "-c", "pip install a; x=$(cd sub; pip install -r r.txt; true)"}, "/w: pip install a"},
		{[]string{"sh", "-c", "pip install a; echo $(cd sub; pip install b)"}, "/w: pip install a"},
		{[]string{"sh", "-c", "pip install -e . && npm ci &>log"}, "/w: pip install -e .; /w: npm ci"},
		{[]string{"sh", "-c", "bash -c 'go get example.com/m@latest'"}, "/w: go get example.com/m@latest"},
		{[]string{"sh", "-c", strings.Repeat(" ", 17<<10) + "pip install rich"}, ""},
		{[]string{"python3", "task.py"}, ""},
		{nil, ""},
	} {
		var got []string
		found, _ := plan.Installs(all.Installers(), c.argv, "/w", []string{"/job"})
		for _, i := range found {
			got = append(got, i.Dir+": "+strings.Join(i.Argv, " "))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("in %q is %q, not %q", c.argv, text, c.want)
		}
	}
	if found, rest := plan.Installs(all.Installers(), []string{"sh", "-c", strings.Repeat("pip install a;", 100)}, "/", nil); len(found) != 8 || len(rest) != 92 {
		t.Errorf("%d installs are taken of one text, and %d not", len(found), len(rest))
	}
	job, _ := plan.Installs(all.Installers(), []string{"sh", "-c", "cd /job/deep && npm ci"}, "/w", []string{"/job", "/"})
	if len(job) != 1 || !strings.Contains(job[0].Rewrite.Argv[2], "top=/job here=deep") {
		t.Errorf("the project of the mount is not copied: %+v", job)
	}
}
