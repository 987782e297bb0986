package pycode

import (
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"1 + 1":             "",
		"import subprocess": "process:subprocess@1",
		"import subprocess as sp\nsp.run(['ls'])":           "process:subprocess@1 process:subprocess.run@2",
		"import os\nos.path.join('a')\nos.system('ls')":     "process:os.system@3",
		"import os as o\no.execv('a', [])":                  "process:os.execv@2",
		"from os import path, system as s\ns('x')":          "process:os.system@1 process:os.system@2",
		"from os import (\n  path,\n  popen,\n)":            "process:os.popen@3",
		"from os import *\nsystem('x')":                     "process:os.*@1 process:os.system@2",
		"x = __import__('subprocess')":                      "process:subprocess@1",
		"import importlib\nimportlib.import_module('pty')":  "process:pty@2",
		"name = 'o' + 's'\n__import__(name)":                "import:__import__@2",
		"import os\ngetattr(os, 'system')('ls')":            "process:os.system@2",
		"import os\ngetattr(os, 'sys' + 'tem')('ls')":       "obfuscation:getattr-os@2",
		"import os\nf = os.system\nf('ls')":                 "process:os.system@2 process:os.system@3",
		"e = eval\ne('1')":                                  "dynamic-code:eval@1 dynamic-code:eval@2",
		"eval(input())":                                     "dynamic-code:eval@1",
		"model.eval()":                                      "",
		"import base64\nexec(base64.b64decode('cHJpbnQ='))": "dynamic-code:exec@2 obfuscation:decoded-code@2",
		"import base64\nbase64.b64decode('cHJpbnQ=')":       "",
		"!pip install x":                                    "process:!pip@1",
		"files = !ls":                                       "process:!ls@1",
		"%pip install x":                                    "process:%pip@1",
		"%%bash\nls":                                        "process:%%bash@1",
		"%time os.getcwd()":                                 "",
		"%%time\nimport subprocess":                         "process:subprocess@2",
		"%matplotlib inline\nx = 5 % 3\ny = x != 2":         "",
		"get_ipython().system('ls')":                        "process:get_ipython.system@1",
		"s = 'import subprocess'\n# import subprocess\n'''\nimport subprocess\n'''": "",
		"f\"{__import__('subprocess').run('ls')}\"":                                 "process:subprocess@1",
		"import ctypes":                                         "native:ctypes@1",
		"import ſubprocess":                                     "process:subprocess@1",
		"s = '" + strings.Repeat(`\x41`, 20) + "'":              "obfuscation:escaped-text@1",
		"import asyncio\nasyncio.create_subprocess_shell('ls')": "process:asyncio.create_subprocess_shell@2",
		"this is (no python":                                    "",
		"import os;\\\nos.system('x')":                          "process:os.system@2",
		"globals()['__builtins__']":                             "obfuscation:globals@1",
	} {
		if got := Text(Scan(code)); got != want {
			t.Errorf("%q:\n got %q\nwant %q", code, got, want)
		}
	}
}

// TestScanIsBounded: much of the same costs little, and does not end the process.
func TestScanIsBounded(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		strings.Repeat("import subprocess\n", 50_000), strings.Repeat("f'{", 100_000), strings.Repeat("(", 500_000), strings.Repeat("a.", 300_000),
		strings.Repeat("'", 99_999), strings.Repeat("%time ", 50_000), strings.Repeat(`"""`, 99_999), "from os import " + strings.Repeat("(", 100_000), "\xff\xfe" + strings.Repeat("\x00", 1000),
	} {
		if got := Scan(code); len(got) > maxFindings+1 {
			t.Errorf("%d findings in %.20q", len(got), code)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add("from os import (a as b, *)\nf'{x!r:{y}}'")
	f.Add("%%time\n!x = !ls\ngetattr(os,")
	f.Fuzz(func(t *testing.T, code string) {
		for _, found := range Scan(code) {
			if found.Line < 1 || strings.ContainsAny(found.What, " \n") {
				t.Errorf("%q: %+v", code, found)
			}
		}
	})
}
