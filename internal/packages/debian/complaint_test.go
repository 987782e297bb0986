package debian

import "testing"

// TestComplaint: apt's words count, and not what is in the paths and addresses beside them.
func TestComplaint(t *testing.T) {
	t.Parallel()
	const missing = "it does not have a file that its lists name"
	for said, want := range map[string]string{
		"E: Failed to fetch http://mirror.example/pool/tool.deb  404  Not Found [IP: 192.0.2.1 80]\n":           missing,
		"W: Download is performed unsandboxed as root as file '/state/404/archives/partial' couldn't be read\n": "",
		"N: see http://mirror.example:40404/steady\n":                                                           "",
		"W: Some index files failed to download. They have been ignored, or old ones used instead.\n":           "a list can't be had",
		"E: Unable to locate package 404-tool\n":                                                                "Unable to locate package 404-tool",
		"":                                                                                                      "",
	} {
		if got := complaint(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
}
