// Package artifacts keeps the files that attempts wrote in a store of objects: a
// directory, or a bucket of S3 or of what speaks like it.
//
//	worker:  Uploader   ended attempt → Scan → hash → claim a row → object → row says stored
//	server:  Store.Read                  a download
//	server:  Cleaner                     removes objects that no row names
//
// An object is named by what is in it: sha256/<2 hex>/<64 hex>. So a file that is
// there already is not sent again, by whom ever it was written, and an upload that
// was killed goes on where it was. An object is seen when it is whole, or not at
// all. A row names an object before the object is sent, and objects are removed
// while no row can be added: no row ever names an object that the Cleaner took.
package artifacts
