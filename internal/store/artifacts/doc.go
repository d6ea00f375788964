// Package artifacts stores the files of attempts as objects: in a directory, or
// in a bucket of S3 or a compatible service.
//
//	worker:  Uploader       ended attempt → scan → hash → claim a row → object → row says stored
//	worker:  Checkpointer   /trial/checkpoint → one tar → the same
//	worker:  Store.Restore  object → file → checked → unpacked
//	server:  Store.Read     a download
//	server:  Cleaner        removes objects that no row names
//
// An object is named by its content: sha256/<2 hex>/<64 hex>. So a stored file is
// not sent again, whichever attempt wrote it, and a killed upload goes on at the
// same place. An object becomes visible only when it is whole. A row names an
// object before the object is sent, and objects are removed while no row can be
// added: no row ever names an object that the Cleaner removed.
package artifacts
