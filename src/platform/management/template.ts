// The official templates, which everybody has.
import type { Template } from "./template-input.ts";

const official = (id: string, name: string, imageName: string, more: Partial<Template> = {}): Template => ({
  id,
  name,
  imageName,
  category: "NVIDIA",
  containerDiskInGb: 20,
  volumeInGb: 20,
  volumeMountPath: "/workspace",
  dockerEntrypoint: [],
  dockerStartCmd: [],
  env: {},
  ports: ["8888/http", "22/tcp"],
  readme: "",
  isPublic: true,
  isRunpod: true,
  isServerless: false,
  earned: 0,
  runtimeInMin: 0,
  ...more,
});

export const officialTemplates: readonly Template[] = [
  official("official-pytorch", "PyTorch 2.8", "docker.io/pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel", {
    readme: "# PyTorch\nPyTorch 2.8 with CUDA 12.8 and cuDNN 9.",
  }),
  official("official-rocm", "PyTorch ROCm", "docker.io/rocm/pytorch:latest", { category: "AMD" }),
  official("official-ubuntu", "Ubuntu 24.04", "docker.io/library/ubuntu:24.04", { category: "CPU", volumeInGb: 0 }),
  official("official-worker", "Serverless worker", "docker.io/library/python:3.12-slim", {
    isServerless: true,
    ports: [],
    volumeInGb: 0,
    dockerStartCmd: ["python", "-u", "handler.py"],
    readme: "# Serverless worker\nPut a handler at `handler.py`.",
  }),
];

export function officialTemplate(id: string): Template | undefined {
  return officialTemplates.find((template) => template.id === id);
}
