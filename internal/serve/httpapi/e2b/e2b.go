// Package e2b speaks the wire protocol that unmodified E2B SDKs speak.
//
// The control plane is the routes about sandboxes (create, list, pause, ...), for callers with an
// API key. The data plane is for those who have a sandbox's access token: commands, files and ports
// of that one sandbox. Its own port is 49983.
//
// The policy wins over what a client asks for.
package e2b

// EnvdVersion is what the data plane tells clients about itself: they choose by it
// which features they use. 0.6.4 means: standard input is off unless asked for,
// the default user is the server's affair, CloseStdin, uploads as
// application/octet-stream, metadata of files, and entries in the events of a watch.
const EnvdVersion = "0.6.4"
