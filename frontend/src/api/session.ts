export { onSessionEnd } from "@/api/client";
