// Package snapshots is where copies of sandboxes lie on the disk.
//
// Vocabulary: a *snapshot* is a directory that never changes: an *image*, which
// an engine wrote and sealed, *attachments*, which are small files of whoever
// made it, and a *manifest*, which names all of it by digest; a *draft* is a
// snapshot that is being made, or an image that is thrown away after use; a
// *lease* keeps a snapshot from being removed while it is read; a *cold* snapshot
// has its image compressed.
//
//	<dir>/<id>/manifest.json   what it is; written last
//	<dir>/<id>/image/          the engine's files
//	<dir>/<id>/cold/           the same, each compressed, in place of image/
//	<dir>/<id>/NAME.json       attachments
//	<dir>/<id>/state.json      what may change: its record in the log, whether its name was taken over
//	<dir>/.new-*, .gone-*      drafts and what is being removed; swept at start
//
// A draft becomes a snapshot in one rename, after all of it is on the disk: when
// the power fails there is a whole snapshot or none. The digest of a snapshot is
// that of its manifest, which has those of the seal and of the attachments, so
// that no byte can change unnoticed. Who may write the directory may write a
// whole other snapshot there: the log has the digest of the real one.
package snapshots
