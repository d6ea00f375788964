export { holdSession, onSessionEnd } from "@/api/client";
