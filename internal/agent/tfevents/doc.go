// Package tfevents reads TensorBoard's event files: records of protobuf messages,
// each with its length and two checksums. No maintained Go library does
// (helinwang/tfsum is of 2017), so the few fields that matter are read by hand.
//
// The record format is TensorFlow's TFRecord, as tensorboard's
// summary/writer/record_writer.py (2.21) writes it: the length of the data as
// uint64, its masked CRC-32C, the data, its masked CRC-32C, all little-endian.
// Messages and field numbers are of tensorboard/compat/proto: event.proto,
// summary.proto, tensor.proto, tensor_shape.proto, types.proto (2.21).
package tfevents
