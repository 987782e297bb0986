package sdk

import "testing"

// TestControlJavaScript: sandboxes from the outside, with each version of the SDK.
func TestControlJavaScript(t *testing.T) {
	if !long() {
		t.Skip("set COFFERDAM_LONG=1 for it: the same program speaks to real sandboxes always (TestControlOfADaemon)")
	}
	for _, version := range javaScriptVersions() {
		t.Run(version, func(t *testing.T) {
			dir := javaScript(t, version)
			run(t, append(serve(t).environment(), "SDK_DIR="+dir), 12, "node", "control.mjs")
		})
	}
}

// TestControlPython does the same in Python.
func TestControlPython(t *testing.T) {
	if !long() {
		t.Skip("set COFFERDAM_LONG=1 for it: the same questions are put from JavaScript always (TestControlOfADaemon)")
	}
	for _, version := range pythonVersions() {
		t.Run(version, func(t *testing.T) {
			interpreter := python(t, version)
			run(t, serve(t).environment(), 11, interpreter, "control.py")
		})
	}
}
